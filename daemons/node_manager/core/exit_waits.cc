#include "daemons/node_manager/core/exit_waits.h"

#include <fmt/core.h>

#include <utility>

#include "daemons/node_manager/core/node_core.h"

namespace rt::node {
namespace {

proto::WorkerExitReply reply_of(const proto::ExitInfo* end) {
  proto::WorkerExitReply reply;
  if (!end) return reply;
  reply.set_exited(true);
  *reply.mutable_info() = *end;
  return reply;
}

}  // namespace

ExitWaits::ExitWaits(const NodeCore& core, std::string node_ip, IsEnding is_ending)
    : core_(core), node_ip_(std::move(node_ip)), is_ending_(std::move(is_ending)) {}

void ExitWaits::ask(const WorkerId& worker, Answer answer, Now now) {
  const proto::ExitInfo* end = core_.view().workers().exit_of(worker);
  // One that is unknown may have been forgotten since.
  if (end || !core_.view().worker(worker)) return answer(reply_of(end));
  const int64_t due_us = now.steady_us + kStillAliveUs;
  questions_[worker].emplace(++last_number_, Question{std::move(answer), now.steady_us, due_us});
  due_.emplace(due_us, last_number_, worker);
}

void ExitWaits::ended(const WorkerId& worker) {
  auto waiting = questions_.extract(worker);
  if (waiting.empty()) return;
  for (const auto& [number, question] : waiting.mapped())
    due_.erase({question.due_us, number, worker});
  const proto::WorkerExitReply reply = reply_of(core_.view().workers().exit_of(worker));
  for (const auto& [number, question] : waiting.mapped()) question.answer(reply);
}

void ExitWaits::tick(Now now) {
  while (!due_.empty() && std::get<0>(*due_.begin()) <= now.steady_us) {
    const auto [due_us, number, worker] = *due_.begin();
    due_.erase(due_.begin());
    look_at(worker, number, now);
  }
}

void ExitWaits::look_at(const WorkerId& id, uint64_t number, Now now) {
  auto of_worker = questions_.find(id);
  Question& question = of_worker->second.at(number);
  const Worker* worker = core_.view().worker(id);
  const bool goes_on = worker && worker->connected && worker->state != WorkerState::kDying &&
                       !is_ending_(worker->pid);
  if (!goes_on && now.steady_us < question.asked_us + kGiveUpUs) {
    question.due_us = question.asked_us + kGiveUpUs;
    due_.emplace(question.due_us, number, id);
    return;
  }
  proto::WorkerExitReply reply;
  if (goes_on)
    reply.mutable_info()->set_message(fmt::format(
        "the connection to worker process {} on node {} broke, while the process goes on",
        worker->pid, node_ip_));
  const Answer answer = std::move(question.answer);
  of_worker->second.erase(number);
  if (of_worker->second.empty()) questions_.erase(of_worker);
  answer(reply);
}

int64_t ExitWaits::next_tick_us() const { return due_.empty() ? -1 : std::get<0>(*due_.begin()); }

}  // namespace rt::node
