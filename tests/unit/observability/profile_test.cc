// A process that profiles itself: threads that run, that sleep and that block signals are all
// seen, and system calls are disturbed as rarely as possible.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "observability/profile/capture.h"
#include "observability/profile/language.h"
#include "observability/profile/render.h"
#include "observability/profile/sampler.h"
#include "observability/profile/threads.h"

namespace rt::profile {
namespace {

using proto::StackSamples;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Request = proto::ProfileRequest;

std::atomic<bool> g_end{false};
std::atomic<uint64_t> g_sum{0};
std::atomic<int> g_interrupted{0};
const std::atomic<bool> kNever{false};

[[gnu::noinline]] void burn_here() {
  while (!g_end) {
    for (uint64_t i = 0; i < 1000; ++i) g_sum += i;
  }
}

// Waits until the descriptor is readable and counts how often a signal interrupted the call.
[[gnu::noinline]] void sleep_here(int fd) {
  pollfd wanted{fd, POLLIN, 0};
  while (poll(&wanted, 1, -1) < 0) ++g_interrupted;
  g_sum += 1;
}

// Threads that have begun when start() returns, and that the destructor ends and joins.
class Threads {
 public:
  Threads() : wake_(eventfd(0, 0)) {
    g_end = false;
    g_interrupted = 0;
  }
  ~Threads() {
    g_end = true;
    uint64_t one = 1;
    EXPECT_EQ(write(wake_, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    for (auto& thread : threads_) thread.join();
    close(wake_);
  }
  // Returns the kernel's id of the new thread.
  int start(std::function<void()> body) {
    std::atomic<int> tid{0};
    threads_.emplace_back([&tid, body = std::move(body)] {
      tid = static_cast<int>(syscall(SYS_gettid));
      tid.notify_one();
      body();
    });
    tid.wait(0);
    return tid;
  }
  int wake() const { return wake_; }

 private:
  int wake_;
  std::vector<std::thread> threads_;
};

Request request_of(Request::Mode mode, bool native = true) {
  Request request;
  request.set_duration_ms(400);
  request.set_hz(100);
  request.set_mode(mode);
  request.set_native(native);
  return request;
}

// The samples of one thread: their numbers on and off a processor, and its stacks in folded form.
struct ThreadSamples {
  int64_t on = 0, off = 0;
  std::string folded;
};
ThreadSamples samples_of_thread(const StackSamples& samples, int tid) {
  ThreadSamples seen;
  for (const auto& stack : samples.stacks()) {
    if (samples.threads(static_cast<int>(stack.thread())).tid() != tid) continue;
    seen.on += stack.on_cpu();
    seen.off += stack.off_cpu();
    for (uint32_t id : stack.frames())
      seen.folded += samples.frames(static_cast<int>(id)).function() + ";";
    seen.folded += '\n';
  }
  return seen;
}

bool is_in(const StackSamples& samples, int tid, const char* function) {
  return samples_of_thread(samples, tid).folded.find(function) != std::string::npos;
}

// The first look that `holds`, or the last of a hundred: a thread that has begun may not have
// reached its function yet.
Result<StackSamples> look_until(const std::function<bool(const StackSamples&)>& holds) {
  auto samples = take_stacks(true);
  for (int i = 0; i < 100 && samples && !holds(*samples); ++i) samples = take_stacks(true);
  return samples;
}

TEST(ProfileTest, OneLookShowsEveryThreadsNativeFrames) {
  Threads threads;
  int burns = threads.start(burn_here), sleeps = threads.start([&] { sleep_here(threads.wake()); });
  auto samples = look_until([&](const StackSamples& seen) {
    return is_in(seen, burns, "burn_here") && is_in(seen, sleeps, "sleep_here");
  });
  ASSERT_TRUE(samples) << samples.error().message;
  EXPECT_THAT(samples_of_thread(*samples, burns).folded, HasSubstr("burn_here()"));
  EXPECT_EQ(samples_of_thread(*samples, burns).on, 1);
  EXPECT_THAT(samples_of_thread(*samples, sleeps).folded, HasSubstr("sleep_here(int)"));
  bool line_known = false;
  for (const auto& frame : samples->frames())
    line_known |= frame.function().find("burn_here") != std::string::npos &&
                  frame.file().ends_with("profile_test.cc") && frame.line() > 0;
  EXPECT_TRUE(line_known);
  EXPECT_EQ(samples->notes_size(), 0) << samples->notes(0);
}

TEST(ProfileTest, ModesTellTimeOnTheProcessorFromTimeAsleep) {
  Threads threads;
  int burns = threads.start(burn_here), sleeps = threads.start([&] { sleep_here(threads.wake()); });
  auto wall = take_profile(request_of(Request::WALL), kNever),
       cpu = take_profile(request_of(Request::CPU), kNever),
       off = take_profile(request_of(Request::OFF_CPU), kNever);
  ASSERT_TRUE(wall && cpu && off);
  EXPECT_GT(samples_of_thread(*wall, burns).on, wall->looks() / 2);
  EXPECT_GT(samples_of_thread(*wall, sleeps).off, wall->looks() / 2);
  EXPECT_GT(samples_of_thread(*cpu, burns).on, 0);
  EXPECT_EQ(samples_of_thread(*cpu, sleeps).on + samples_of_thread(*cpu, sleeps).off, 0);
  EXPECT_GT(samples_of_thread(*off, sleeps).off, off->looks() / 2);
  EXPECT_EQ(samples_of_thread(*off, burns).on, 0);
}

TEST(ProfileTest, ASleepingCallIsInterruptedOnceNotAtEveryLook) {
  Threads threads;
  threads.start([&] { sleep_here(threads.wake()); });
  auto samples = take_profile(request_of(Request::WALL), kNever);
  ASSERT_TRUE(samples);
  // A look that comes too late is not taken, but counted.
  EXPECT_GT(samples->looks() + samples->missed(), 20);
  EXPECT_GE(g_interrupted, 1);
  EXPECT_LE(g_interrupted, 3);
}

TEST(ProfileTest, AThreadThatBlocksAllSignalsIsSeenWhileItSleeps) {
  Threads threads;
  int sleeps = threads.start([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    sleep_here(threads.wake());
  });
  auto until_asleep = [&] {
    ThreadSamples seen;
    // At first it may not block them yet, so that it answers from elsewhere.
    for (int i = 0; i < 1000 && seen.folded.find("poll") == std::string::npos; ++i)
      seen = samples_of_thread(*take_stacks(true), sleeps);
    return seen;
  };
  EXPECT_THAT(until_asleep().folded, HasSubstr("poll"));
  EXPECT_EQ(g_interrupted, 0);
}

// A thread that burns with all signals blocked until 50 ms after go_on(), and then in burn_here().
class BlocksAtFirst {
 public:
  using Clock = std::chrono::steady_clock;
  BlocksAtFirst() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    tid_ = threads_.start([this, before] {
      while (Clock::now() < until_.load()) g_sum += 1;
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      burn_here();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  void go_on() { until_ = Clock::now() + std::chrono::milliseconds(50); }
  int tid() const { return tid_; }

 private:
  std::atomic<Clock::time_point> until_{Clock::time_point::max()};
  int tid_ = 0;
  Threads threads_;
};

TEST(ProfileTest, AThreadThatBlocksSignalsOnlyAtFirstIsSeenAfterwards) {
  BlocksAtFirst burns;
  burns.go_on();
  auto samples = take_profile(request_of(Request::WALL), kNever);
  ASSERT_TRUE(samples);
  EXPECT_THAT(samples_of_thread(*samples, burns.tid()).folded, HasSubstr("burn_here"));
}

TEST(ProfileTest, ASingleLookWaitsForAThreadThatBlocksSignalsForAMoment) {
  BlocksAtFirst burns;
  burns.go_on();
  auto samples = take_stacks(true);
  ASSERT_TRUE(samples);
  EXPECT_NE(samples_of_thread(*samples, burns.tid()).folded, "");
  EXPECT_EQ(samples->notes_size(), 0) << samples->notes(0);
}

TEST(ProfileTest, AThreadThatBlocksSignalsWhileItRunsIsInANote) {
  BlocksAtFirst burns;
  auto samples = take_stacks(true);
  burns.go_on();
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples_of_thread(*samples, burns.tid()).folded, "");
  ASSERT_EQ(samples->notes_size(), 1);
  EXPECT_EQ(samples->notes(0), "1 thread blocked signals while running, which hides the stack");
}

TEST(ProfileTest, AThreadOfTheRuntimeThatRunsIsNotInANote) {
  // A new thread has the name of the one that starts it.
  char name[16];
  ASSERT_EQ(prctl(PR_GET_NAME, name), 0);
  ASSERT_EQ(prctl(PR_SET_NAME, "ray-io"), 0);
  BlocksAtFirst burns;
  ASSERT_EQ(prctl(PR_SET_NAME, name), 0);
  auto samples = take_stacks(true);
  burns.go_on();
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples_of_thread(*samples, burns.tid()).folded, "");
  EXPECT_EQ(samples->notes_size(), 0) << samples->notes(0);
}

TEST(ProfileTest, ALateSignalLeavesASlotAloneThatIsArmedForAnotherThread) {
  auto captures = Captures::get();
  ASSERT_TRUE(captures);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t self = gettid();
  Capture* slot = (*captures)->acquire(self, true);
  ASSERT_TRUE((*captures)->request(slot, self));
  (*captures)->release(slot);
  ASSERT_EQ((*captures)->acquire(self + 1, true), slot);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);  // The signal comes now.
  EXPECT_EQ(slot->state.load(), self + 1);
  (*captures)->release(slot);
  EXPECT_EQ(slot->state.load(), Capture::kIdle);
}

// The thread that called vfork() takes no signals until the child has ended, which is when `late`
// becomes readable. The child says on `begun` that it waits for that. Then the thread stays until
// `end` is readable, so that a profile that begins later finds it here as well.
[[gnu::noinline]] void wait_for_a_child_of_vfork(int begun, int late, int end) {
  pid_t child = vfork();
  if (child == 0) {
    uint64_t ticks = 1;
    _exit(write(begun, &ticks, sizeof(ticks)) < 0 || read(late, &ticks, sizeof(ticks)) < 0);
  }
  sleep_here(end);
  waitpid(child, nullptr, 0);
}

TEST(ProfileTest, AThreadMayAnswerAfterTheLastLook) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's vfork() keeps no frame, so that the stack lacks its caller";
#endif
  int begun = eventfd(0, EFD_CLOEXEC), late = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  Threads threads;
  auto request = request_of(Request::WALL);
  request.set_duration_ms(50);
  int answers = threads.start([&] { wait_for_a_child_of_vfork(begun, late, threads.wake()); });
  uint64_t count = 0;
  EXPECT_EQ(read(begun, &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
  // Well after the last look, and long before the profile waits no longer for the answer.
  itimerspec after{{}, {0, 150'000'000}};
  EXPECT_EQ(timerfd_settime(late, 0, &after, nullptr), 0);
  auto samples = take_profile(request, kNever);
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->notes_size(), 0) << samples->notes(0);
  EXPECT_THAT(samples_of_thread(*samples, answers).folded, HasSubstr("wait_for_a_child_of_vfork"));
  close(late);
  close(begun);
}

extern "C" void call_through_nameless_frames(void (*last)());  // In nameless_frames.cc.

TEST(ProfileTest, ARunOfFramesWithoutASymbolIsOneFrame) {
  Threads threads;
  int burns = threads.start([] { call_through_nameless_frames(burn_here); });
  auto samples =
      look_until([&](const StackSamples& seen) { return is_in(seen, burns, "burn_here"); });
  ASSERT_TRUE(samples);
  EXPECT_THAT(samples_of_thread(*samples, burns).folded,
              HasSubstr(";call_through_nameless_frames;[libnameless_frames.so];rt::profile::("
                        "anonymous namespace)::burn_here();"));
  EXPECT_THAT(folded({{"x", *samples}}), HasSubstr(";[libnameless_frames.so];"));
}

// A language whose stacks always consist of two frames, kInner and kOuter, in a thread that has
// set t_in_fake_language.

constexpr uint64_t kInner = 7, kOuter = 8;
thread_local bool t_in_fake_language = false;
size_t fake_capture(LanguageFrame* out, size_t capacity) noexcept {
  if (!t_in_fake_language || capacity < 2) return 0;
  out[0] = {kInner, 1, false};
  out[1] = {kOuter, 1, true};
  return 2;
}
class FakeSymbols final : public LanguageSymbols {
 public:
  void resolve(std::span<const LanguageFrame> frames, std::vector<FrameName>* names) override {
    names->clear();
    for (const auto& frame : frames)
      names->push_back({frame.code == kInner ? "inner" : "outer", "program.fake", 3});
  }
};
extern "C" [[gnu::noinline]] void fake_evaluator() {
  t_in_fake_language = true;
  burn_here();
  t_in_fake_language = false;
}
const Language kFake{"Fake 1", "fake_evaluator", fake_capture,
                     [] { return std::unique_ptr<LanguageSymbols>(new FakeSymbols); }};

struct ScopedFakeLanguage {
  ScopedFakeLanguage() { set_language(&kFake); }
  ~ScopedFakeLanguage() { set_language(nullptr); }
};

TEST(ProfileTest, LanguageFramesStandForTheirEvaluator) {
  ScopedFakeLanguage fake;
  Threads threads;
  int speaks = threads.start(fake_evaluator), burns = threads.start(burn_here);
  auto samples = look_until([&](const StackSamples& seen) {
    return is_in(seen, speaks, "burn_here") && is_in(seen, burns, "burn_here");
  });
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->runtime(), "Fake 1");
  std::string stack = samples_of_thread(*samples, speaks).folded;
  EXPECT_THAT(stack, HasSubstr("outer;inner;"));
  EXPECT_THAT(stack, HasSubstr("burn_here()"));
  EXPECT_LT(stack.find("inner"), stack.find("burn_here"));
  EXPECT_THAT(stack, Not(HasSubstr("fake_evaluator")));
  EXPECT_THAT(samples_of_thread(*samples, burns).folded, Not(HasSubstr("inner")));
  // Without native frames, only threads that run the language have stacks.
  auto pure = take_stacks(false);
  ASSERT_TRUE(pure);
  EXPECT_EQ(samples_of_thread(*pure, speaks).folded, "outer;inner;\n");
  EXPECT_EQ(samples_of_thread(*pure, burns).folded, "");
}

TEST(ProfileTest, AThreadThatEndsHidesNoOther) {
  for (int i = 0; i < 300; ++i) {
    std::atomic<bool> end{false};
    std::jthread ends([&] { end.wait(false); });
    Threads threads;
    int stays = threads.start([&] { sleep_here(threads.wake()); });
    end = true;
    end.notify_one();
    for (int looks = 0; looks < 20; ++looks)
      ASSERT_THAT(list_threads(getpid()), Contains(stays)) << "try " << i << ", look " << looks;
  }
}

TEST(ProfileTest, OneAtATimeAndWithinBounds) {
  EXPECT_EQ(take_profile(Request(), kNever).error().code, Code::kInvalid);
  Request request = request_of(Request::WALL);
  request.set_hz(kMaxHz + 1);
  EXPECT_EQ(take_profile(request, kNever).error().code, Code::kInvalid);
  std::atomic<bool> stop{false};
  request.set_hz(10);
  request.set_duration_ms(kMaxDurationMs);
  std::thread other([&] {
    auto samples = take_profile(request, stop);  // Would last an hour if it were not stopped.
    while (!samples && !stop) samples = take_profile(request, stop);
    EXPECT_TRUE(samples);
  });
  Result<StackSamples> refused = StackSamples();
  while (refused) refused = take_stacks(true);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  stop = true;
  other.join();
  EXPECT_TRUE(take_stacks(true));
}

// Adds a thread to `samples` that was on a processor in one sample and asleep in 99.
void add_mostly_asleep(StackSamples* samples, int tid, const std::string& name) {
  auto* stack = samples->add_stacks();
  stack->set_thread(static_cast<uint32_t>(samples->threads_size()));
  stack->set_on_cpu(1);
  stack->set_off_cpu(99);
  auto* thread = samples->add_threads();
  thread->set_tid(tid);
  thread->set_name(name);
}

TEST(ProfileTest, SleepOfServiceThreadsCanBeLeftOut) {
  StackSamples driver, daemon;
  driver.set_pid(10);
  add_mostly_asleep(&driver, 10, "python3");
  add_mostly_asleep(&driver, 11, "ray-io");
  add_mostly_asleep(&driver, 12, "operators");
  driver.add_stacks()->set_thread(1);
  driver.mutable_stacks(3)->set_off_cpu(5);
  daemon.set_pid(20);
  add_mostly_asleep(&daemon, 20, "ray-head");
  add_mostly_asleep(&daemon, 21, "ray-head");
  AllSamples all = {{"driver", driver}, {"head", daemon}};
  leave_out_idle_service(&all);
  EXPECT_EQ(folded(all),
            "driver;python3 (10) 100\ndriver;ray-io (11) 1\ndriver;operators (12) "
            "100\nhead;ray-head (20) 100\nhead;ray-head (21) 100\n");
}

TEST(ProfileTest, FormatsSayTheSame) {
  StackSamples samples;
  samples.set_pid(42);
  samples.set_period_us(10'000);
  samples.add_threads()->set_tid(43);
  samples.mutable_threads(0)->set_name("main;<x>");
  samples.add_frames()->set_function("outer");
  auto* inner = samples.add_frames();
  inner->set_function("a<b>");
  inner->set_file("/x/y.py");
  inner->set_line(9);
  auto* stack = samples.add_stacks();
  stack->add_frames(0);
  stack->add_frames(1);
  stack->set_on_cpu(3);
  AllSamples all = {{"worker 42", samples}};
  EXPECT_EQ(folded(all), "worker 42;main:<x> (43);outer;a<b> (/x/y.py:9) 3\n");
  EXPECT_THAT(stacks_text(all),
              HasSubstr("Thread 43 (active): \"main;<x>\"\n    a<b> (/x/y.py:9)\n    outer\n"));
  auto json = nlohmann::json::parse(speedscope(all));
  EXPECT_EQ(json["profiles"][0]["samples"], nlohmann::json::parse("[[0,1]]"));
  EXPECT_DOUBLE_EQ(json["profiles"][0]["weights"][0], 0.03);
  std::string svg = flamegraph(all, "title & more");
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b&gt; (/x/y.py:9) (3 samples, 100.00%)</title>"));
  EXPECT_THAT(svg, HasSubstr("title &amp; more"));
  EXPECT_THAT(profile_text(all), HasSubstr(" 100.0%  100.0%  a<b> (/x/y.py:9)"));
  EXPECT_EQ(render(all, "dot", "").error().code, Code::kInvalid);
  all[0].samples.mutable_threads(0)->set_name("p\xff");
  for (const char* format : {"flamegraph", "speedscope", "folded", "text"})
    EXPECT_THAT(*render(all, format, ""), HasSubstr("p\xef\xbf\xbd")) << format;
  EXPECT_THAT(stacks_text(all), HasSubstr("\"p\xef\xbf\xbd\""));
  all[0].samples.mutable_threads(0)->clear_name();
  EXPECT_THAT(stacks_text(all), HasSubstr("Thread 43 (active)\n"));
  EXPECT_THAT(folded(all), HasSubstr(";thread (43);"));
  EXPECT_THAT(flamegraph(all, ""), HasSubstr("<title>thread (43) (3 samples"));
}

}  // namespace
}  // namespace rt::profile
