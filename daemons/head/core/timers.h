// A queue of tasks by due time. The whole core shares one queue, so that the service needs a
// single timer.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "common/base/clock.h"

namespace rt::head {

// Calls functions at the times that they were asked for. It is not thread-safe: only the core's
// thread uses it.
class Timers {
 public:
  using Task = std::function<void(Now)>;
  using Id = uint64_t;  // 0 means no timer.

  // Runs `task` once, in the first run_due() at or after `steady_us` (steady clock).
  Id at(int64_t steady_us, Task task);
  // Sets the caller's `id` to 0. Does nothing else for a task that has run or for id 0.
  void cancel(Id& id);
  void run_due(Now now);
  // The steady time of the next task, or -1.
  int64_t next_us() const { return due_.empty() ? -1 : due_.begin()->first.first; }

 private:
  std::map<std::pair<int64_t, Id>, Task> due_;
  std::map<Id, int64_t> times_;
  Id last_ = 0;
};

}  // namespace rt::head
