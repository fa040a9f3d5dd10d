// How this process comes to its end, other than with its session: when Leaving says so, or when a
// signal arrives. Carries out what Leaving decides.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "worker/core/leaving.h"
#include "worker/core/task_line.h"
#include "worker/service/lock.h"

namespace rt::worker {

class Departure final : public LeaveSink {
 public:
  struct Hooks {
    // Whether replies are held that have not left.
    std::function<bool()> holds_replies;
    // Whether others need what this process owns.
    std::function<bool()> is_needed;
    // Interrupts the code of the user that runs. False when it cannot be interrupted.
    std::function<bool()> interrupt;
    // The actor leaves: calls are refused with this reason from here on.
    std::function<void(const std::string& why)> refuse_with;
    // Asks the node-manager to end this actor. It answers with Exit, and knows the cause by then.
    std::function<void(const std::string& why)> ask_to_end;
    // Tells the node-manager that this process ends.
    std::function<void()> tell_leaving;
    // Sends what is recorded and answered.
    std::function<void()> flush;
    // Lets the threads that wait look again.
    std::function<void()> wake;
  };

  // `waker` wakes the thread that reads the sockets, and is safe in signal handlers. `line` must
  // outlive this object.
  Departure(std::function<void()> waker, TaskLine& line, Hooks hooks)
      : waker_(std::move(waker)), hooks_(std::move(hooks)), leaving_(line, *this) {}

  Leaving& leaving() REQUIRES(worker_mutex) { return leaving_; }
  const Leaving& leaving() const REQUIRES(worker_mutex) { return leaving_; }
  // The actor ends by its own wish, for this reason.
  void exit_actor(const std::string& why) REQUIRES(worker_mutex);

  // Makes Execution::run() return `code`.
  void end(int code) REQUIRES(worker_mutex);
  // Makes it return -SIGTERM. For any thread, and for signal handlers.
  void end_by_signal();
  // Whether it is to return.
  bool ends() const REQUIRES(worker_mutex) { return leaving_.ends() || signalled_; }
  int exit_code() const REQUIRES(worker_mutex);
  // True once after a signal: the waiting task is interrupted.
  bool take_signal() REQUIRES(worker_mutex) {
    return signalled_ && !std::exchange(signal_taken_, true);
  }

  bool holds_replies() const override REQUIRES(worker_mutex) { return hooks_.holds_replies(); }
  bool is_needed() const override REQUIRES(worker_mutex) { return hooks_.is_needed(); }
  void leave() override REQUIRES(worker_mutex);
  void leave_at_once() override REQUIRES(worker_mutex);
  void ask_to_end() override REQUIRES(worker_mutex) { hooks_.ask_to_end(why_); }

 private:
  void stop(int code) REQUIRES(worker_mutex);

  const std::function<void()> waker_;
  const Hooks hooks_;
  Leaving leaving_ GUARDED_BY(worker_mutex);
  std::string why_ GUARDED_BY(worker_mutex);  // the actor left
  int exit_code_ GUARDED_BY(worker_mutex) = 0;
  std::atomic<bool> signalled_{false};
  bool signal_taken_ GUARDED_BY(worker_mutex) = false;
};

}  // namespace rt::worker
