// Tells the node-manager how many tasks and calls of this process wait, for `rayctl status`. Any
// number of tasks costs two messages a second.
#pragma once

#include <cstdint>
#include <functional>

#include "common/net/loop.h"
#include "worker/core/task.h"
#include "worker/service/lock.h"

namespace rt::worker {

class WaitingReport {
 public:
  struct Hooks {
    // The calls to actors that wait at this process, because too many are unanswered.
    std::function<int64_t()> held_back;
    // The calls that the actor which this process is has had for so long and does not start,
    // because it runs as many at a time as it may.
    std::function<int64_t(int64_t for_us)> waiting_for_turn;
    // Tells the node-manager. False: there is no connection to it.
    std::function<bool(int64_t for_arguments, int64_t for_actors)> tell;
  };

  // Both must outlive this object.
  WaitingReport(net::Loop& loop, TaskPool& tasks, Hooks hooks)
      : loop_(loop), tasks_(tasks), hooks_(std::move(hooks)) {}

  // The number of tasks that wait for arguments may have changed.
  void arguments_changed() REQUIRES(worker_mutex);
  // Calls to an actor wait at this process, because too many of them are unanswered.
  void calls_held_back() REQUIRES(worker_mutex);
  // Looks a moment later whether calls of the actor that this process is wait for their turn.
  void watch_turns() REQUIRES(worker_mutex);

 private:
  // Tells the numbers, and again as long as calls are held back.
  void send() REQUIRES(worker_mutex);

  net::Loop& loop_;
  TaskPool& tasks_;
  const Hooks hooks_;
  bool turns_timer_set_ GUARDED_BY(worker_mutex) = false;
  bool send_timer_set_ GUARDED_BY(worker_mutex) = false;
};

}  // namespace rt::worker
