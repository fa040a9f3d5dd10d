// Tasks out, on their way from the call to the frame in which they leave: their arguments, their
// returns, and what they wait for here. Submitter and ActorCalls decide where and when they run;
// Results has how they end.
//
// All methods are called with the worker's mutex held, except submit(), which takes it, and
// parent_of(). Those that take the lock release it while they write large arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "worker/core/task.h"
#include "worker/service/cancellation.h"
#include "worker/service/link.h"
#include "worker/service/pump.h"
#include "worker/service/results.h"
#include "worker/service/waiting.h"
#include "worker/worker.h"

namespace rt::worker {

class Submission {
 public:
  using Lock = Pump::Lock;

  // `impl` must outlive this object.
  explicit Submission(Worker::Impl& impl)
      : impl_(impl), results_(impl), cancellation_(impl), waiting_(impl) {}

  Results& results() { return results_; }
  Cancellation& cancellation() { return cancellation_; }
  WaitingReport& waiting() { return waiting_; }

  // The first task gets the number after `unique`.
  void set_first_number(uint64_t unique) { last_number_ = unique; }

  // Takes the lock.
  Status submit(const Template* function, std::span<const Arg> args, std::vector<Ref>* returns);

  // The template of these bytes; always the same one.
  const Template* make_template(proto::TaskTemplate spec);
  // The number of a template that others own. It is never used again, because peers may remember
  // the template.
  uint32_t take_template_number();

  // The steps of a submission, for calls to actors, too.
  TaskPool& tasks() { return tasks_; }
  uint64_t next_number() { return ++last_number_; }
  Status build_args(Lock& lock, Task& task, std::span<const Arg> args);
  void make_returns(Task& task, std::vector<Ref>* returns);
  // Calls `ready` once when the last unready argument has become ready, unless the task was dropped
  // before. False: all are ready, and `ready` is not called.
  bool wait_for_args(Task* task, std::function<void()> ready);
  // Appends the task to the connection's frame, preceded by its template and parent where the peer
  // does not have them.
  void write_task(Link& link, const Task& task);
  // Tells the peer, before the first task on a connection, whether this process records its
  // submissions.
  void announce_recording(Link& link);

  // Tasks that a driver submits outside of tasks have the driver's own task as their parent.
  TaskId parent_or_driver(const TaskId& parent) const;
  TaskId parent_of(const Task& task) const { return parent_or_driver(task.parent); }
  // The pending task that makes the object; null when there is none.
  static Task* producer_of(const ObjectEntry* entry);

 private:
  void task_ready(Task* task);
  // If an argument is an error, fails the task with it and returns true.
  bool args_failed(Task* task);

  Worker::Impl& impl_;
  Results results_;
  Cancellation cancellation_;
  WaitingReport waiting_;
  TaskPool tasks_;
  uint64_t last_number_ = 0;
  std::vector<std::unique_ptr<Template>> templates_;  // By number; null for one that others own.
  std::unordered_map<std::string, Template*> template_by_bytes_;
};

}  // namespace rt::worker
