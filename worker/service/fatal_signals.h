// A process that ends by a fault of its own (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) does one
// thing before.
#pragma once

#include <functional>

namespace rt::worker {

// While it lives, `last` is called in the thread that faults, as a signal handler; then what
// handled the signal before does (a dump of the stacks, the end). Of several instances in a process
// the first counts. A process forked from this one only ends.
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
