// A task an owner has submitted and that has not finished.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "worker/ref.h"

namespace rt::worker {

struct ObjectEntry;
struct SchedulingClass;

// A function with its options (worker.h: Template). Immutable but for what is measured.
struct Template {
  uint32_t id = 0;
  proto::TaskTemplate spec;
  std::string serialized;
  SchedulingClass* scheduling_class = nullptr;  // null for actor methods

  bool alone = false;  // max_calls: its worker may end after it, nothing is sent behind it

  // Measured by this owner: moving average of the execution time.
  int64_t average_us = -1;  // -1: not known yet
  void measured(int64_t us) {
    average_us = average_us < 0 ? us : average_us + (us - average_us) / 4;
  }
};

struct Task {
  TaskId id;
  TaskId parent;           // the task that submitted it; nil: none
  int64_t created_us = 0;  // when: wall clock
  const Template* function = nullptr;
  // Arguments in order: inline ones are slices of `inlined`, the others references.
  struct Arg {
    Ref ref;  // empty: inline
    uint32_t offset = 0, size = 0;
  };
  std::vector<Arg> args;
  std::string inlined;    // encoded values, one after the other
  std::vector<Ref> held;  // references inside inline values: held until the reply
  std::vector<Ref> returns;
  Ref actor_handle;          // keeps the actor in scope while the call is pending
  int32_t retries_left = 0;  // -1: no limit
  int32_t unready_args = 0;
  uint8_t attempt = 0;
  bool suspect = false;    // was in flight when its worker died: runs alone until it ends
  bool cancelled = false;  // by the user: it never runs again
  bool in_gap =
      false;  // an actor's call without retries, made while nobody knew whether the actor lives
  uint32_t seq = 0;         // on the connection it was pushed over
  int64_t estimate_us = 0;  // of the time it was pushed
  uint32_t generation = 0;  // grows when the task is recycled: callbacks that outlive it compare
  int32_t callbacks = 0;    // of those still out
};

// Tasks are recycled: their strings and vectors keep their memory. One with callbacks still out is
// never deleted.
class TaskPool {
 public:
  Task* take() {
    if (free_.empty()) return new Task;
    Task* task = free_.back();
    free_.pop_back();
    return task;
  }
  void give_back(Task* task) {
    if (task->callbacks == 0 && (free_.size() >= kKeep || task->inlined.capacity() > 4096)) {
      delete task;
      return;
    }
    task->args.clear();
    task->inlined.clear();
    task->held.clear();
    task->returns.clear();
    task->actor_handle.reset();
    task->unready_args = 0;
    task->attempt = 0;
    task->suspect = task->cancelled = task->in_gap = false;
    ++task->generation;
    free_.push_back(task);
  }
  ~TaskPool() {
    for (Task* task : free_) delete task;
  }

 private:
  static constexpr size_t kKeep = 4096;
  std::vector<Task*> free_;
};

}  // namespace rt::worker
