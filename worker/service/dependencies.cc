// A task waits at its owner until its arguments are made.
#include <unistd.h>

#include "worker/core/death.h"
#include "worker/service/impl.h"

namespace rt::worker {

void say_what_waits(Worker::Impl& impl) {
  if (impl.stopping || !impl.node_manager || !impl.node_manager->is_open()) return;
  proto::WaitingTasks waiting;
  waiting.set_for_arguments(impl.tasks.awaiting_arguments());
  waiting.set_for_actors(impl.actors->held_back());
  rpc::notify(*impl.node_manager, &proto::NodeManagerService::Stub::SetWaiting, waiting);
  impl.node_manager->flush();
  if (waiting.for_actors() > 0)
    impl.loop->run_after(kReportWaitingAfterUs, [&impl] { say_what_waits(impl); });
}

namespace {

// The node-manager hears of the number of tasks that wait some time after it has changed, so that
// any number of tasks costs two messages a second.
void report_waiting(Worker::Impl& impl) {
  if (!impl.tasks.wants_report()) return;
  impl.loop->run_after(kReportWaitingAfterUs, [&impl] {
    if (impl.tasks.take_report()) say_what_waits(impl);
  });
  if (impl.pumping) impl.loop->wake();
}

}  // namespace

bool Worker::Impl::wait_for_args(Task* task, std::function<void()> ready) {
  for (Task::Arg& arg : task->args) {
    if (!arg.ref) continue;
    auto& entry = *static_cast<ObjectEntry*>(arg.ref.entry());
    if (entry.ready) continue;
    tasks.await_argument(task);
    ++task->use.callbacks;
    entry.waiters.push_back([this, task, ready, use = task->use.number] {
      --task->use.callbacks;
      if (task->use.number != use || !tasks.argument_ready(task)) return;
      report_waiting(*this);
      ready();
    });
    resolve(entry);
  }
  if (task->unready_args == 0) return false;
  report_waiting(*this);
  return true;
}

bool Worker::Impl::args_failed(Task* task) {
  for (Task::Arg& arg : task->args) {
    if (!arg.ref) continue;
    auto& entry = *static_cast<ObjectEntry*>(arg.ref.entry());
    if (entry.state == ObjectState::kInMemory && is_error(entry.blob.bytes())) {
      Receiver receiver{task->function->spec.function(), task->id, {}, getpid(), context.node_ip};
      std::string error = encoded_dependency_error(entry.blob.bytes(), receiver);
      entry.unseen_error = false;
      fail_with_blob(task, copy_blob(as_bytes(error)));
      return true;
    }
  }
  return false;
}

}  // namespace rt::worker
