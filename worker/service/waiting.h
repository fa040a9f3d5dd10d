// Tells the node-manager how many tasks and calls of this process wait, for `rayctl status`. Any
// number of tasks costs two messages a second.
//
// All methods are called with the worker's mutex held.
#pragma once

#include <cstdint>

#include "worker/worker.h"

namespace rt::worker {

class WaitingReport {
 public:
  // `impl` must outlive this object.
  explicit WaitingReport(Worker::Impl& impl) : impl_(impl) {}

  // The number of tasks that wait for arguments may have changed.
  void arguments_changed();
  // Calls to an actor wait at this process, because too many of them are unanswered.
  void calls_held_back();
  // Looks a moment later whether calls of the actor that this process is wait for their turn.
  void watch_turns();

 private:
  // Tells the numbers, and again as long as calls are held back.
  void send();
  // Calls that this actor has had for so long and does not start, because it runs as many at a time
  // as it may.
  int64_t waiting_for_turn(int64_t for_us) const;

  Worker::Impl& impl_;
  bool turns_timer_set_ = false, send_timer_set_ = false;
};

}  // namespace rt::worker
