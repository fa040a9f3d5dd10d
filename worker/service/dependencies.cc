// A task waits at its owner until its arguments are made.
#include <unistd.h>

#include <utility>

#include "worker/core/death.h"
#include "worker/core/value_codec.h"
#include "worker/service/objects.h"
#include "worker/service/submission.h"

namespace rt::worker {

bool Submission::wait_for_args(Task* task, std::function<void()> ready) {
  for (Task::Arg& arg : task->args) {
    if (!arg.ref) continue;
    auto& entry = entry_of(arg.ref);
    if (entry.ready) continue;
    tasks_.await_argument(task);
    ++task->use.callbacks;
    entry.mutable_details().waiters.push_back([this, task, ready, use = task->use.number] {
      assert_locked();
      --task->use.callbacks;
      if (task->use.number != use || !tasks_.argument_ready(task)) return;
      waiting_.arguments_changed();
      ready();
    });
    parts_.objects.resolve(entry);
  }
  if (task->unready_args == 0) return false;
  waiting_.arguments_changed();
  return true;
}

bool Submission::args_failed(Task* task) {
  for (Task::Arg& arg : task->args) {
    if (!arg.ref) continue;
    auto& entry = entry_of(arg.ref);
    if (entry.state == ObjectState::kInMemory && is_error(entry.blob.bytes())) {
      Receiver receiver{
          task->function->spec.function(), task->id, {}, getpid(), parts_.shared.context.node_ip};
      std::string error = encoded_dependency_error(entry.blob.bytes(), receiver);
      entry.unseen_error = false;
      results_.fail_unsent(task, copy_blob(as_bytes(error)));
      return true;
    }
  }
  return false;
}

}  // namespace rt::worker
