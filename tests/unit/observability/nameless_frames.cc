// A stripped library with one exported function, like the programs that distributions ship: the
// profiler finds no symbol for the frames in between.
namespace {

volatile int g_here = 0;

[[gnu::noinline]] void third(void (*last)()) {
  last();
  g_here = 3;  // Keeps last() from being a tail call, which would have no frame.
}
[[gnu::noinline]] void second(void (*last)()) {
  third(last);
  g_here = 2;
}
[[gnu::noinline]] void first(void (*last)()) {
  second(last);
  g_here = 1;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void call_through_nameless_frames(
    void (*last)()) {
  first(last);
  g_here = 0;
}
