// Threads that leave signals alone.
//
// Signals are for the program's own threads: Ctrl-C has to interrupt the call that the program
// waits in, and a daemon's loop has to hear of SIGTERM. The kernel gives a signal to any thread
// that does not block it, so that a helper thread which blocks nothing would now and then swallow
// one.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <thread>

#include "common/base/status.h"

namespace rt {

// As long as this object lives, its thread blocks all signals; then the mask is as before. A thread
// or process that is started meanwhile begins with all signals blocked, from its first instruction.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Starts a thread that blocks all signals. Fails with kResourceExhausted if the process can have no
// more threads. The caller joins or detaches it.
Result<std::thread> start_thread(std::function<void()> work);

}  // namespace rt
