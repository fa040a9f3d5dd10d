#include "worker/service/waiting.h"

#include <utility>

#include "worker/service/executing_task.h"
#include "worker/service/impl.h"

namespace rt::worker {
namespace {

constexpr int64_t kReportAfterUs = 500'000;
// A call that has been handed over for less time is about to start.
constexpr int64_t kCallWaitsAfterUs = kReportAfterUs / 2;

}  // namespace

int64_t WaitingReport::waiting_for_turn(int64_t for_us) const {
  const proto::ActorSpec* actor = impl_.execution.actor_spec();
  if (!actor || !is_concurrent(*actor)) return 0;
  const int64_t before_us = wall_now_us() - for_us;
  int64_t count = 0;
  for (ExecutingTaskImpl* task = impl_.execution.running(); task; task = task->next())
    count += !task->progress().has_started() && task->times().start_us <= before_us;
  return count;
}

void WaitingReport::send() {
  if (impl_.stopping || !impl_.nodes.is_local_open()) return;
  proto::WaitingTasks waiting;
  waiting.set_for_arguments(impl_.submission.tasks().awaiting_arguments());
  waiting.set_for_actors(impl_.actor_client.calls().held_back() +
                         waiting_for_turn(kCallWaitsAfterUs));
  rpc::notify(*impl_.nodes.local(), &proto::NodeManagerService::Stub::SetWaiting, waiting);
  impl_.nodes.local()->flush();
  if (waiting.for_actors() == 0) return watch_turns();
  if (std::exchange(send_timer_set_, true)) return;
  impl_.loop->run_after(kReportAfterUs, [this] {
    send_timer_set_ = false;
    send();
  });
}

void WaitingReport::watch_turns() {
  if (turns_timer_set_ || send_timer_set_ || waiting_for_turn(0) == 0) return;
  turns_timer_set_ = true;
  impl_.loop->run_after(kReportAfterUs, [this] {
    turns_timer_set_ = false;
    waiting_for_turn(kCallWaitsAfterUs) > 0 ? send() : watch_turns();
  });
}

void WaitingReport::arguments_changed() {
  if (!impl_.submission.tasks().wants_report()) return;
  impl_.loop->run_after(kReportAfterUs, [this] {
    if (impl_.submission.tasks().take_report()) send();
  });
}

void WaitingReport::calls_held_back() {
  impl_.loop->run_after(kReportAfterUs, [this] { send(); });
}

}  // namespace rt::worker
