// A task that this process has submitted and that has not finished.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "worker/ref.h"

namespace rt::worker {

struct ObjectEntry;
struct SchedulingClass;

// A function with its options (worker.h: Template). Immutable except for the measured duration.
struct Template {
  uint32_t id = 0;
  proto::TaskTemplate spec;
  std::string serialized;
  SchedulingClass* scheduling_class = nullptr;  // Null for actor methods.

  // Set with max_calls: the worker may end after the task, so nothing is sent behind it.
  bool alone = false;

  // A copy that runs in the placement group of its submitter counts its tasks, because it is freed
  // after the group; -1: it is not such a copy.
  mutable int64_t captured_tasks = -1;

  // The moving average of the execution time, as measured by this owner.
  mutable int64_t average_us = -1;  // -1: not known yet.
  void measured(int64_t us) const {
    average_us = average_us < 0 ? us : average_us + (us - average_us) / 4;
  }
};

struct Task {
  TaskId id;
  TaskId parent;           // The task that submitted it; nil: none.
  int64_t created_us = 0;  // Time of submission, microseconds, wall clock.
  const Template* function = nullptr;
  // Replaces that of the function, for a task that prefers the node of its arguments.
  SchedulingClass* own_class = nullptr;
  // An argument: a slice of `inlined` or a reference.
  struct Arg {
    Ref ref;  // Empty: the argument is inline.
    uint32_t offset = 0, size = 0;
  };
  std::vector<Arg> args;
  std::string inlined;    // Encoded values, one after the other.
  std::vector<Ref> held;  // References inside inline values, kept until the reply.
  std::vector<Ref> returns;
  Ref actor_handle;          // Keeps the actor in scope while the call is pending.
  int32_t retries_left = 0;  // -1 means no limit.
  int32_t unready_args = 0;
  // From 0. The wire has one byte for it, and all attempts after the 255th have its number.
  uint8_t attempt = 0;
  void count_attempt() {
    if (attempt < UINT8_MAX) ++attempt;
  }
  // Was in flight when its worker died. It runs alone on a lease until it ends.
  bool suspect = false;
  bool cancelled = false;  // Cancelled by the user; never runs again.
  // An actor's call without retries that was made while nobody knew whether the actor lives.
  bool in_gap = false;
  uint32_t seq = 0;         // The sequence number on its connection.
  uint16_t lane = 0;        // An actor's call: the index in ActorLink::lanes.
  int64_t estimate_us = 0;  // The expected duration when it was pushed.
  // TaskPool's. Callbacks of an earlier use of a recycled task recognise by the number that they
  // are outdated.
  struct Use {
    uint32_t place = 0;
    uint32_t number = 0;
    int32_t callbacks = 0;  // Not run yet.
  } use;
};

inline SchedulingClass* class_of(const Task& task) {
  return task.own_class ? task.own_class : task.function->scheduling_class;
}

// Owns every task from take() on, and so decides alone when one is deleted. Everybody else has
// pointers: until give_back(), the queues of Submitter and ActorCalls and the entries of the task's
// results; and beyond it the callbacks that wait for its arguments, which is why a task is not
// deleted before all of them have run. The pool outlives all of these.
//
// Tasks are recycled, so that their strings and vectors keep their memory.
class TaskPool {
 public:
  Task* take() {
    if (free_.empty()) return make();
    Task* task = free_.back();
    free_.pop_back();
    return task;
  }
  // One more argument of the task is not ready.
  void await_argument(Task* task) {
    if (task->unready_args++ == 0) ++awaiting_arguments_;
  }
  // One of them is. Returns true when all are.
  bool argument_ready(Task* task) {
    if (--task->unready_args > 0) return false;
    --awaiting_arguments_;
    return true;
  }
  // The number of tasks with arguments that are not ready is reported from time to time: when this
  // returns true, the caller must call take_report() a moment later.
  bool wants_report() {
    if (report_due_ || awaiting_arguments_ == reported_) return false;
    return report_due_ = true;
  }
  // Returns true if the number is another one than was reported last.
  bool take_report() {
    report_due_ = false;
    return std::exchange(reported_, awaiting_arguments_) != awaiting_arguments_;
  }
  int64_t awaiting_arguments() const { return awaiting_arguments_; }
  void give_back(Task* task) {
    if (task->unready_args > 0) --awaiting_arguments_;
    if (task->use.callbacks == 0 && (free_.size() >= kKeep || task->inlined.capacity() > 4096)) {
      destroy(task);
      return;
    }
    task->args.clear();
    task->inlined.clear();
    task->held.clear();
    task->returns.clear();
    task->actor_handle.reset();
    task->own_class = nullptr;
    task->unready_args = 0;
    task->attempt = 0;
    task->suspect = task->cancelled = task->in_gap = false;
    ++task->use.number;
    free_.push_back(task);
  }

 private:
  static constexpr size_t kKeep = 4096;
  Task* make() {
    Task* task = all_.emplace_back(std::make_unique<Task>()).get();
    task->use.place = static_cast<uint32_t>(all_.size() - 1);
    return task;
  }
  void destroy(Task* task) {
    all_.back()->use.place = task->use.place;
    std::swap(all_[task->use.place], all_.back());
    all_.pop_back();
  }

  std::vector<std::unique_ptr<Task>> all_;  // Each at its place.
  std::vector<Task*> free_;
  int64_t awaiting_arguments_ = 0, reported_ = 0;
  bool report_due_ = false;
};

}  // namespace rt::worker
