// Cancellation of tasks by their owner.
//
// All methods are called with the worker's mutex held, except cancel(), which takes it.
#pragma once

#include "worker/core/task.h"
#include "worker/worker.h"

namespace rt::worker {

class Cancellation {
 public:
  // `impl` must outlive this object.
  explicit Cancellation(Worker::Impl& impl) : impl_(impl) {}

  // See Worker::cancel(). Asks the owner of an object that this process has borrowed.
  Status cancel(const Ref& ref, bool force, bool recursive);
  // Cancels a pending task of this process. Fails with kInvalid for force on an actor's call.
  Status cancel_task(Task* task, bool force, bool recursive);
  // Cancels the pending tasks that a task has submitted in this process.
  void cancel_children(const TaskId& parent, bool force);

 private:
  Worker::Impl& impl_;
};

}  // namespace rt::worker
