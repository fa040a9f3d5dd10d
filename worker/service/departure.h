// How this process comes to its end, other than with its session: the node-manager tells it to go,
// its actor ends by its own wish, a signal arrives, or it has run the last call that it may. A
// graceful end waits until what is queued has run and been answered, and nobody needs what this
// process owns.
//
// All methods are called with the worker's mutex held, except end_by_signal().
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "worker/worker.h"

namespace rt::worker {

class Departure {
 public:
  // `impl` must outlive this object.
  explicit Departure(Worker::Impl& impl) : impl_(impl) {}

  // The node-manager wants this worker to end: with `graceful` once its queued work is done and
  // nobody needs its objects, else at once.
  void leave(bool graceful);
  // This process takes no more work, and ends once nobody needs it.
  void leave_when_idle() { when_idle_ = true; }
  // Called after each of the things that a graceful end waits for.
  void leave_if_idle() {
    if (when_idle_) leave_now_if_idle();
  }
  bool is_graceful() const { return when_idle_; }
  // Whether a graceful end was asked for, and nothing is left that it waits for.
  bool is_free_to_go() const { return when_idle_ && may_leave(); }

  // The actor ends by its own wish: no waiting call starts any more.
  void exit_actor(const std::string& why);
  // Set when the actor leaves by itself, as soon as the calls that run have ended, and refuses all
  // others.
  const std::optional<std::string>& left_because() const { return left_because_; }

  // Makes Execution::run() return `code`.
  void end(int code);
  // Makes it return -SIGTERM. For any thread, and for signal handlers.
  void end_by_signal();
  // Whether it is to return.
  bool ends() const { return ending_ || signalled_; }
  int exit_code() const;
  // True once after a signal: the waiting task is interrupted.
  bool take_signal() { return signalled_ && !std::exchange(signal_taken_, true); }

 private:
  // Whether this process has nothing to execute and nobody needs what it owns.
  bool may_leave() const;
  void leave_now_if_idle();

  Worker::Impl& impl_;
  bool ending_ = false, when_idle_ = false;
  std::optional<std::string> left_because_;
  int exit_code_ = 0;
  std::atomic<bool> signalled_{false};
  bool signal_taken_ = false;
};

}  // namespace rt::worker
