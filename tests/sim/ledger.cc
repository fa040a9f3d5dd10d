#include "tests/sim/ledger.h"

#include <fmt/core.h>

#include "worker/core/death.h"

namespace rt::sim {

TaskRecord& Ledger::record(const TaskId& id) {
  auto it = tasks_.find(id);
  if (it == tasks_.end()) violation(fmt::format("task {} was never submitted", id.hex()));
  return it->second;
}

void Ledger::submitted(const TaskId& id, TaskPlan plan, uint64_t owner, const ActorId& actor,
                       uint64_t order) {
  auto [it, added] = tasks_.try_emplace(id);
  if (!added) violation(fmt::format("task id {} is used twice", id.hex()));
  it->second.plan = std::move(plan);
  it->second.owner = owner;
  it->second.actor = actor;
  it->second.order = order;
  it->second.late = doomed(it->second);
  open_by_owner_[owner].insert(id);
  ++pending_;
  ++totals_.submitted;
  totals_.calls += !actor.is_nil();
}

const TaskRecord& Ledger::started(const TaskId& id, uint64_t worker, const NodeId& node) {
  TaskRecord& task = record(id);
  task.ran_on = node;
  ++task.executions;
  ++totals_.executions;
  ++running_;
  if (!task.running_on.empty()) {
    ++totals_.overlapping_runs;
    // Two executions may only overlap if the first worker cannot be reached.
    if (!network_faults_)
      violation(fmt::format("task {} runs on workers #{} and #{} at once", id.hex(),
                            task.running_on.begin()->first, worker));
  }
  ++task.running_on[worker];
  int allowed = 1 + task.plan.max_retries + task.free_passes;
  if (task.plan.max_retries >= 0 && task.executions > allowed) {
    violation(fmt::format(
        "task {} (max_retries={}) is executed for the {}th time, {} of them free of charge",
        id.hex(), task.plan.max_retries, task.executions, task.free_passes));
  }
  // The worker of an actor in a removed group runs on until its node hears of the removal. When the
  // head is restarted in between that is later than the owner hears that the actor is dead.
  const bool killed_late = !task.actor.is_nil() && doomed(task);
  if (task.ended && !network_faults_ && !killed_late && open_by_owner_.contains(task.owner))
    violation(fmt::format("task {} is executed after it has ended", id.hex()));
  return task;
}

void Ledger::sent(const TaskId& id) {
  if (record(id).cancelled)
    violation(fmt::format("task {} is sent to a worker after it was cancelled", id.hex()));
}

void Ledger::stopped(const TaskId& id, uint64_t worker) {
  TaskRecord& task = record(id);
  auto it = task.running_on.find(worker);
  if (it == task.running_on.end())
    violation(fmt::format("task {} did not run on worker #{}", id.hex(), worker));
  if (--it->second == 0) task.running_on.erase(it);
  --running_;
}

void Ledger::incident(const TaskId& id, bool charged) {
  TaskRecord& task = record(id);
  ++task.incidents;
  if (charged) return;
  // After that it is sent to a worker alone, so that no other task can run before it.
  if (++task.free_passes > 1)
    violation(fmt::format("task {} was retried free of charge twice", id.hex()));
  if (task.executions > 0) ++totals_.reruns_not_charged;
}

void Ledger::end(TaskRecord& task) {
  task.ended = true;
  --pending_;
}

void Ledger::succeeded(const TaskId& id) {
  TaskRecord& task = record(id);
  if (task.ended) violation(fmt::format("task {} ends twice", id.hex()));
  if (task.executions == 0)
    violation(fmt::format("task {} succeeded without having run", id.hex()));
  open_by_owner_[task.owner].erase(id);
  end(task);
  ++totals_.succeeded;
}

void Ledger::failed(const TaskId& id, const proto::ErrorValue& error) {
  TaskRecord& task = record(id);
  if (task.ended) violation(fmt::format("task {} ends twice", id.hex()));
  check_cause(id, task, error);
  task.error = error.code();
  open_by_owner_[task.owner].erase(id);
  end(task);
  ++totals_.failed;
  ++failures_[error.code() == worker::kTaskRaised
                  ? "raised"
                  : std::string(code_name(static_cast<Code>(error.code())))];
}

void Ledger::check_cause(const TaskId& id, const TaskRecord& task,
                         const proto::ErrorValue& error) const {
  auto wrong = [&](const char* why) {
    violation(fmt::format("task {} failed without cause ({}): {} {}", id.hex(), why, error.code(),
                          error.message()));
  };
  if (doomed(task)) return;
  const int used = task.incidents - task.free_passes + task.retries_used;
  bool any_fault = process_faults_ || network_faults_;
  const ActorRecord* actor = task.actor.is_nil() ? nullptr : &actors_.at(task.actor);
  if (error.code() == worker::kTaskRaised) {
    if (task.executions == 0 || task.executions > task.plan.raises) wrong("its code has no error");
    if (!task.plan.retries_errors || task.cancelled) return;
    if (task.plan.max_retries < 0 || used < task.plan.max_retries) wrong("it had retries left");
    return;
  }
  switch (static_cast<Code>(error.code())) {
    case Code::kWorkerCrashed:
      if (task.incidents == 0) wrong("no worker was lost with it");
      if (used <= task.plan.max_retries) wrong("it had retries left");
      if (task.cancelled) wrong("it was cancelled");
      if (!any_fault && task.plan.crashes == 0) wrong("nothing was killed, and it does not crash");
      break;
    case Code::kNodeDied:
      if (!any_fault) wrong("no node was lost");
      if (used <= task.plan.max_retries) wrong("it had retries left");
      if (task.cancelled) wrong("it was cancelled");
      break;
    case Code::kActorDied:
      if (!actor) return wrong("it is no actor call");
      // The head has given up the node of the driver, and the driver does not know that yet.
      // UNKNOWN is the answer of a head that has restarted since, because it does not keep dead
      // actors.
      if (network_faults_ && (error.exit().kind() == proto::ExitInfo::JOB_FINISHED ||
                              error.exit().kind() == proto::ExitInfo::OWNER_DIED ||
                              error.exit().kind() == proto::ExitInfo::UNKNOWN))
        return;
      if (head_given_up_ && error.exit().message().starts_with("the head cannot be reached"))
        return;
      // No process could be started for it.
      if (spawn_faults_ && error.exit().pid() == 0) return;
      if (!any_fault && !actor->kill_requested && actor->deaths == 0 &&
          !actor->plan.constructor_raises)
        wrong("its actor never died");
      if (!network_faults_ && !actor->kill_requested && !actor->plan.constructor_raises &&
          actor->plan.max_restarts >= 0 && actor->deaths <= actor->plan.max_restarts)
        wrong("its actor had restarts left");
      if (!actor->kill_requested && actor->plan.max_restarts < 0 && !actor->plan.constructor_raises)
        wrong("its actor restarts for ever");
      break;
    case Code::kActorUnavailable:
      // A start whose process could not be made counts as a life.
      if (!actor || (!network_faults_ && !spawn_faults_ && actor->deaths == 0))
        wrong("its actor was there all the time");
      if (task.plan.max_retries < 0) wrong("it had retries without limit");
      break;
    case Code::kInternal:
      // This can also happen after the head has given up the driver's node, and the job with it.
      if (!spawn_faults_ && !network_faults_) wrong("processes could be started");
      break;
    case Code::kCancelled:
      if (!task.cancelled) wrong("nobody has cancelled it");
      break;
    default: wrong("an error the simulation does not expect");
  }
}

bool Ledger::doomed(const TaskRecord& task) const {
  return groups_.doomed(task.actor.is_nil() ? task.plan.group : actors_.at(task.actor).plan.group);
}

std::vector<TaskId> Ledger::open() const {
  std::set<TaskId> ids;  // in an order that is the same in each run
  for (const auto& [owner, open] : open_by_owner_) ids.insert(open.begin(), open.end());
  return {ids.begin(), ids.end()};
}

void Ledger::owner_ended(uint64_t owner) {
  groups_.owner_ended(owner);
  auto open = open_by_owner_.extract(owner);
  if (open.empty()) return;
  for (const TaskId& id : open.mapped()) {
    end(tasks_.at(id));
    ++totals_.abandoned;
  }
}

void Ledger::actor_started(const ActorId& id, int64_t epoch, uint64_t worker) {
  ActorRecord& actor = actors_.at(id);
  auto [it, added] = actor.starts.try_emplace(epoch, worker);
  if (!added)
    violation(fmt::format("actor {} epoch {} starts on worker #{} and again on #{}", id.hex(),
                          epoch, it->second, worker));
  // A removal that the disk did not take is forgotten with the head. While the processes of the
  // group are being killed, the next head may start its actors again, until it is told once more.
  if (!actor.living.empty() && !network_faults_ && !groups_.doomed(actor.plan.group)) {
    // The process of the earlier incarnation ends before the next start is ordered, unless the
    // process cannot be reached.
    violation(fmt::format("actor {} epoch {} starts on worker #{} while it lives on #{}", id.hex(),
                          epoch, worker, *actor.living.begin()));
  }
  // A start that was under way on a node that is lost is no restart, and a head that is lost may
  // not have counted the last one.
  if (actor.plan.max_restarts >= 0 && !network_faults_ && !daemon_faults_ &&
      static_cast<int64_t>(actor.starts.size()) > 1 + actor.plan.max_restarts)
    violation(fmt::format("actor {} (max_restarts={}) starts for the {}th time", id.hex(),
                          actor.plan.max_restarts, actor.starts.size()));
  actor.living.insert(worker);
  ++totals_.actor_starts;
}

void Ledger::actor_ended(const ActorId& id, uint64_t worker) {
  ActorRecord& actor = actors_.at(id);
  if (actor.living.erase(worker)) ++actor.deaths;
}

std::string Ledger::describe_pending(size_t limit) const {
  std::string out;
  for (const TaskId& id : open()) {
    if (limit-- == 0) break;
    const TaskRecord& task = tasks_.at(id);
    const std::string where = task.plan.group.is_nil()
                                  ? ""
                                  : fmt::format(" in bundle {} of group {}", task.plan.bundle,
                                                task.plan.group.hex().substr(0, 8));
    const std::string what = task.actor.is_nil() ? "task" : "call of actor " + task.actor.hex();
    out += fmt::format(
        "  task {} of owner #{}: {} wants {}{}, {} executions, {} incidents, runs on {} workers\n",
        id.hex().substr(0, 16), task.owner, what, task.plan.resources.to_string(), where,
        task.executions, task.incidents, task.running_on.size());
  }
  return out;
}

}  // namespace rt::sim
