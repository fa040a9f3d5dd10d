// Lets a process do one more thing when it ends by a fault of its own (SIGSEGV, SIGBUS, SIGFPE,
// SIGILL, SIGABRT).
#pragma once

#include <functional>

namespace rt::worker {

// While an instance lives, `last` is called in the thread that faults, inside the signal handler.
// After that the previous handler of the signal takes over (to dump the stacks, or to end the
// process). If a process has several instances, only the first has an effect. In a process forked
// from this one `last` is not called.
class FatalSignals {
 public:
  explicit FatalSignals(std::function<void()> last);
  ~FatalSignals();
  FatalSignals(const FatalSignals&) = delete;
  FatalSignals& operator=(const FatalSignals&) = delete;

 private:
  std::function<void()> last_;
};

}  // namespace rt::worker
