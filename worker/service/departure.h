// How this process comes to its end, other than with its session: the node-manager tells it to go,
// its actor ends by its own wish, a signal arrives, or it has run the last call that it may. A
// graceful end waits until what is queued has run and been answered, and nobody needs what this
// process owns.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "worker/service/lock.h"

namespace rt::worker {

class Departure {
 public:
  struct Hooks {
    // Whether something is left that this process has to execute or to answer.
    std::function<bool()> has_work;
    // Whether others need what this process owns.
    std::function<bool()> is_needed;
    // Interrupts the code of the user that runs. False when it cannot be interrupted.
    std::function<bool()> interrupt;
    // Refuses all calls that wait, because the actor ends.
    std::function<void(const std::string& why)> refuse_calls;
    // Asks the node-manager to end this actor. It answers with Exit, and knows the cause by then.
    std::function<void(const std::string& why)> ask_to_end;
    // Tells the node-manager that this process ends.
    std::function<void()> tell_leaving;
    // Sends what is recorded and answered.
    std::function<void()> flush;
    // Lets the threads that wait look again.
    std::function<void()> wake;
  };

  // `waker` wakes the thread that reads the sockets, and is safe in signal handlers.
  Departure(std::function<void()> waker, Hooks hooks)
      : waker_(std::move(waker)), hooks_(std::move(hooks)) {}

  // The node-manager wants this worker to end: with `graceful` once its queued work is done and
  // nobody needs its objects, else at once.
  void leave(bool graceful) REQUIRES(worker_mutex);
  // This process takes no more work, and ends once nobody needs it.
  void leave_when_idle() REQUIRES(worker_mutex) { when_idle_ = true; }
  // Called after each of the things that a graceful end waits for.
  void leave_if_idle() REQUIRES(worker_mutex) {
    if (when_idle_) leave_now_if_idle();
  }
  bool is_graceful() const REQUIRES(worker_mutex) { return when_idle_; }
  // Whether a graceful end was asked for, and nothing is left that it waits for.
  bool is_free_to_go() const REQUIRES(worker_mutex) { return when_idle_ && may_leave(); }

  // The actor ends by its own wish: no waiting call starts any more.
  void exit_actor(const std::string& why) REQUIRES(worker_mutex);
  // Set when the actor leaves by itself, as soon as the calls that run have ended, and refuses all
  // others.
  const std::optional<std::string>& left_because() const REQUIRES(worker_mutex) {
    return left_because_;
  }

  // Makes Execution::run() return `code`.
  void end(int code) REQUIRES(worker_mutex);
  // Makes it return -SIGTERM. For any thread, and for signal handlers.
  void end_by_signal();
  // Whether it is to return.
  bool ends() const REQUIRES(worker_mutex) { return ending_ || signalled_; }
  int exit_code() const REQUIRES(worker_mutex);
  // True once after a signal: the waiting task is interrupted.
  bool take_signal() REQUIRES(worker_mutex) {
    return signalled_ && !std::exchange(signal_taken_, true);
  }

 private:
  // Whether this process has nothing to execute and nobody needs what it owns.
  bool may_leave() const REQUIRES(worker_mutex);
  void leave_now_if_idle() REQUIRES(worker_mutex);

  const std::function<void()> waker_;
  const Hooks hooks_;
  bool ending_ GUARDED_BY(worker_mutex) = false;
  bool when_idle_ GUARDED_BY(worker_mutex) = false;
  std::optional<std::string> left_because_ GUARDED_BY(worker_mutex);
  int exit_code_ GUARDED_BY(worker_mutex) = 0;
  std::atomic<bool> signalled_{false};
  bool signal_taken_ GUARDED_BY(worker_mutex) = false;
};

}  // namespace rt::worker
