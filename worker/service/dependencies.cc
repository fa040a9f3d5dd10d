// A task waits at its owner until its arguments are made.
#include <unistd.h>

#include <utility>

#include "worker/core/death.h"
#include "worker/service/executing_task.h"
#include "worker/service/waiting.h"

namespace rt::worker {

namespace {

// A call that has been handed over for less time is about to start.
constexpr int64_t kCallWaitsAfterUs = kReportWaitingAfterUs / 2;

// Calls that this actor has had for so long and does not start, because it runs as many at a time
// as it may.
int64_t waiting_for_turn(const Worker::Impl& impl, int64_t for_us) {
  const proto::ActorSpec* actor = impl.execution.actor_spec();
  if (!actor || !is_concurrent(*actor)) return 0;
  const int64_t before_us = wall_now_us() - for_us;
  int64_t count = 0;
  for (const ExecutingTaskImpl* task = impl.execution.running(); task; task = task->next())
    count += !task->has_started() && task->start_us() <= before_us;
  return count;
}

}  // namespace

void say_what_waits(Worker::Impl& impl) {
  if (impl.stopping || !impl.nodes.is_local_open()) return;
  proto::WaitingTasks waiting;
  waiting.set_for_arguments(impl.tasks.awaiting_arguments());
  waiting.set_for_actors(impl.actors->held_back() + waiting_for_turn(impl, kCallWaitsAfterUs));
  rpc::notify(*impl.nodes.local(), &proto::NodeManagerService::Stub::SetWaiting, waiting);
  impl.nodes.local()->flush();
  if (waiting.for_actors() == 0) return watch_turns(impl);
  if (std::exchange(impl.timers_set.waiting, true)) return;
  impl.loop->run_after(kReportWaitingAfterUs, [&impl] {
    impl.timers_set.waiting = false;
    say_what_waits(impl);
  });
}

void watch_turns(Worker::Impl& impl) {
  if (impl.timers_set.turns || impl.timers_set.waiting || waiting_for_turn(impl, 0) == 0) return;
  impl.timers_set.turns = true;
  impl.loop->run_after(kReportWaitingAfterUs, [&impl] {
    impl.timers_set.turns = false;
    waiting_for_turn(impl, kCallWaitsAfterUs) > 0 ? say_what_waits(impl) : watch_turns(impl);
  });
  impl.pump.wake_reader();
}

namespace {

// The node-manager hears of the number of tasks that wait some time after it has changed, so that
// any number of tasks costs two messages a second.
void report_waiting(Worker::Impl& impl) {
  if (!impl.tasks.wants_report()) return;
  impl.loop->run_after(kReportWaitingAfterUs, [&impl] {
    if (impl.tasks.take_report()) say_what_waits(impl);
  });
  impl.pump.wake_reader();
}

}  // namespace

bool Worker::Impl::wait_for_args(Task* task, std::function<void()> ready) {
  for (Task::Arg& arg : task->args) {
    if (!arg.ref) continue;
    auto& entry = *static_cast<ObjectEntry*>(arg.ref.entry());
    if (entry.ready) continue;
    tasks.await_argument(task);
    ++task->use.callbacks;
    entry.mutable_details().waiters.push_back([this, task, ready, use = task->use.number] {
      --task->use.callbacks;
      if (task->use.number != use || !tasks.argument_ready(task)) return;
      report_waiting(*this);
      ready();
    });
    objects.resolve(entry);
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
