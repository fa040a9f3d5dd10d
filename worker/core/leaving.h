// Whether this process may end: the node-manager asks it to, it has run the last call that it may,
// or its actor ends by its own wish. What is not urgent waits until the tasks in the line have run
// and been answered, and nobody needs what this process owns.
//
// Guarded by the worker's mutex.
#pragma once

#include <cstdint>

#include "worker/core/line_sink.h"
#include "worker/core/task_line.h"

namespace rt::worker {

class Leaving {
 public:
  // Both must outlive this object.
  Leaving(TaskLine& line, LeaveSink& sink) : line_(line), sink_(sink) {}

  // The node-manager wants this process to end: with `graceful` when nothing is left to do, else at
  // once.
  void asked(bool graceful);
  // A call has ended of a function that a process runs `max_calls` times (0: any number of times),
  // of which `calls` counts those that have ended before in this one. True if it was the last one:
  // this process takes no more, and its owner must be told so.
  bool call_ended(int64_t max_calls, int64_t& calls) {
    if (max_calls <= 0 || ++calls < max_calls || line_.is_actor()) return false;
    when_idle_ = true;
    return true;
  }
  // The actor ends by its own wish: no call starts any more.
  void exit_actor();
  // To be called after each of the things that a graceful end waits for.
  void look() {
    if (when_idle_) leave_if_idle();
  }
  // The process ends for a reason of its own.
  void end() { ends_ = true; }

  // Whether the process takes the next task no more.
  bool ends() const { return ends_; }
  bool is_graceful() const { return when_idle_; }
  // Whether a graceful end was asked for, and nothing is left that it waits for.
  bool is_free_to_go() const { return when_idle_ && may_leave(); }
  // Whether its actor has ended by its own wish.
  bool has_left() const { return left_; }

 private:
  void leave_if_idle();
  bool may_leave() const;

  TaskLine& line_;
  LeaveSink& sink_;
  bool when_idle_ = false;
  bool left_ = false;
  bool ends_ = false;
};

}  // namespace rt::worker
