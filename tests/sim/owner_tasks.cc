#include "tests/sim/owner_tasks.h"

#include <fmt/core.h>

#include "worker/core/death.h"
#include "worker/core/runtime_env.h"

namespace rt::sim {
namespace {

// The runtime environment with these variables; "" without any.
std::string environment_of(const std::map<std::string, std::string>& variables) {
  if (variables.empty()) return "";
  std::string members;
  for (const auto& [name, value] : variables)
    members += fmt::format("{}\"{}\":\"{}\"", members.empty() ? "" : ",", name, value);
  return fmt::format("{{\"env_vars\":{{{}}}}}", members);
}

}  // namespace

// ---- submission

proto::TaskTemplate OwnerTasks::spec_of(const TaskPlan& plan) const {
  proto::TaskTemplate spec;
  spec.set_name(fmt::format("f{}", plan.function));
  plan.resources.to_proto(spec.mutable_resources());
  spec.set_strategy(plan.strategy);
  spec.set_max_calls(plan.max_calls);
  spec.set_runtime_env(
      worker::merge_runtime_env(environment_of(variables_), environment_of(plan.variables)));
  return spec;
}

worker::Template* OwnerTasks::function(const TaskPlan& plan, bool call) {
  std::string key =
      fmt::format("{}/{}/{}/{}/{}", plan.function, call ? "" : plan.resources.to_string(),
                  plan.strategy, call, environment_of(plan.variables));
  if (!call && !plan.group.is_nil()) {
    proto::TaskTemplate spec;
    spec.set_name(fmt::format("f{}", plan.function));
    plan.resources.to_proto(spec.mutable_resources());
    spec.set_group_id(plan.group.binary());
    spec.set_bundle_index(plan.bundle);
    return parts_.groups.function(fmt::format("{}/{}/{}", key, plan.group.hex(), plan.bundle), spec,
                                  parts_.submitter);
  }
  auto& slot = functions_[key];
  if (slot) return slot.get();
  slot = std::make_unique<worker::Template>();
  slot->id = static_cast<uint32_t>(functions_.size());
  slot->spec = spec_of(plan);
  slot->alone = plan.max_calls > 0;
  if (!call) slot->scheduling_class = parts_.submitter.scheduling_class(slot->spec);
  return slot.get();
}

worker::Task* OwnerTasks::make(const TaskPlan& plan, const TaskId& id) {
  worker::Task* task = pool_.take();
  task->id = id;
  task->retries_left = plan.max_retries;
  open_[id] = task;
  return task;
}

void OwnerTasks::submit(const TaskPlan& plan, const TaskId& id, uint64_t order) {
  worker::Task* task = make(plan, id);
  task->function = function(plan, false);
  parts_.groups.task_submitted(task->function);
  TaskPlan recorded = plan;
  recorded.home = environment_.node;
  recorded.variables.insert(variables_.begin(), variables_.end());
  world_.ledger.submitted(id, std::move(recorded), environment_.owner, ActorId::nil(), order);
  auto ready = [this, task, plan] {
    parts_.arguments.prefer(*task, plan, parts_.submitter);
    environment_.drive([&] { parts_.submitter.submit(task); });
  };
  if (plan.unready_us == 0) return ready();
  unready_[id] = task;
  environment_.after(plan.unready_us, "arguments are made", [this, id, ready] {
    if (unready_.erase(id) > 0) ready();
  });
}

void OwnerTasks::call(const TaskPlan& plan, const TaskId& id, uint64_t order) {
  const ActorId actor = actor_of(id);
  worker::Task* task = make(plan, id);
  task->function = function(plan, true);
  world_.ledger.submitted(id, plan, environment_.owner, actor, order);
  worker::ActorCalls& calls = parts_.actors.calls();
  environment_.drive([&] { calls.submit(calls.link(actor), task); });
}

// ---- results

void OwnerTasks::drop(worker::Task* task) {
  open_.erase(task->id);
  parts_.groups.task_ended(task->function);
  pool_.give_back(task);
}

void OwnerTasks::succeed(worker::Task* task) {
  world_.ledger.succeeded(task->id);
  ++succeeded_;
  drop(task);
}

void OwnerTasks::fail(worker::Task* task, const proto::ErrorValue& error) {
  world_.ledger.failed(task->id, error);
  drop(task);
}

bool OwnerTasks::retry(uint64_t lease_key, worker::ActorLink* actor, worker::Task* task) {
  if (task->retries_left == 0 || task->cancelled) return false;
  world_.ledger.error_retried(task->id);
  if (actor) {
    parts_.actors.calls().retry(*actor, task);
  } else {
    parts_.submitter.retry(lease_key, task, worker::Submitter::Cost::kRetry, world_.clock.now());
  }
  return true;
}

bool OwnerTasks::on_reply(uint64_t lease_key, const ActorId& actor_id, const TaskReply& reply) {
  worker::ActorCalls& calls = parts_.actors.calls();
  worker::ActorLink* actor = actor_id.is_nil() ? nullptr : calls.find(actor_id);
  worker::Task* task =
      actor ? calls.reply_of(*actor, reply.seq) : parts_.submitter.reply_of(lease_key, reply.seq);
  if (!task) return false;
  if (reply.leaves && !actor) parts_.submitter.worker_leaves(lease_key);
  if (reply.status == TaskStatus::kNotStarted && !actor) {
    parts_.submitter.task_returned(lease_key, task, world_.clock.now());
    return true;
  }
  if (reply.status == TaskStatus::kErrorRetry && retry(lease_key, actor, task)) return true;
  if (reply.status == TaskStatus::kNoRoom && !actor &&
      parts_.arguments.move(task, world_.ledger.task(task->id).plan, lease_key, parts_.submitter))
    return true;
  if (actor) {
    calls.finished(*actor, task);
  } else {
    parts_.submitter.finished(lease_key, task, reply.duration_us, world_.clock.now());
  }
  switch (reply.status) {
    case TaskStatus::kOk: succeed(task); break;
    case TaskStatus::kRefused: {
      proto::ExitInfo left;
      left.set_kind(proto::ExitInfo::INTENTIONAL);
      fail(task, worker::actor_death_error(task, actor->id, &actor->info, left));
      break;
    }
    // An actor returns a call unstarted if it was cancelled.
    case TaskStatus::kNotStarted:
    case TaskStatus::kInterrupted: fail(task, worker::cancelled_error(*task)); break;
    case TaskStatus::kError:
    case TaskStatus::kErrorRetry: {
      proto::ErrorValue error;
      error.set_code(worker::kTaskRaised);
      fail(task, error);
      break;
    }
    case TaskStatus::kNoRoom:
      fail(task, worker::system_error(Code::kObjectStoreFull, "no room for the arguments", *task));
      break;
  }
  return true;
}

// ---- cancellation

void OwnerTasks::tell(worker::TaskChannel* channel, uint32_t seq, bool force, bool recursive) {
  if (!channel) return;
  static_cast<Channel*>(channel)->send("cancel", [seq, force, recursive](Channel& at) {
    worker_at(at).cancel(at, seq, force, recursive);
  });
}

void OwnerTasks::cancel(const TaskId& id, bool force, bool recursive) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  worker::Task* task = found->second;
  world_.ledger.cancelled(id);
  environment_.drive([&] {
    if (!task->function->scheduling_class) {
      worker::ActorCalls& calls = parts_.actors.calls();
      worker::ActorLink& actor = calls.link(actor_of(id));
      if (calls.cancel(actor, task)) tell(actor.channel, task->seq, false, recursive);
      return;
    }
    const worker::Submitter::Cancelled cancelled = parts_.submitter.cancel(task);
    if (cancelled.lease) {
      tell(cancelled.lease->channel, task->seq, force, recursive);
      if (force) end_by_force(cancelled.lease->key, id);
    }
    if (cancelled.submitted != !unready_.contains(id))
      violation(fmt::format("owner #{} cancels task {}, and it is {} to its submitter",
                            environment_.owner, id.hex(),
                            cancelled.submitted ? "known" : "unknown"));
    if (cancelled.submitted) return;
    unready_.erase(id);
    fail(task, worker::cancelled_error(*task));
  });
}

// The node kills a worker that does not end as it was told, because it is stopped or stuck.
void OwnerTasks::end_by_force(uint64_t lease_key, const TaskId& id) {
  constexpr int64_t kGraceUs = 1'000'000;
  // To kill it, and to learn that it has ended, which takes long when its connections end without
  // a word.
  constexpr int64_t kEndsWithinUs = 4'000'000;
  auto runs = [this, lease_key, id]() -> const worker::Lease* {
    const worker::Lease* lease = parts_.submitter.find_lease(lease_key);
    // Only the first task in flight can be running.
    return lease && !lease->in_flight.empty() && lease->in_flight.front()->id == id ? lease
                                                                                    : nullptr;
  };
  environment_.after(kGraceUs, "cancel by force", [this, runs, id] {
    const worker::Lease* lease = runs();
    if (!lease) return;
    environment_.kill_worker(*lease);
    environment_.after(kEndsWithinUs, "has ended by force", [this, runs, id] {
      if (runs())
        violation(fmt::format("task {} runs on although it was cancelled by force", id.hex()));
    });
  });
}

void OwnerTasks::cancel_child_of(const TaskId& parent, bool force) {
  const TaskId child = world_.ledger.task(parent).child;
  if (!child.is_nil()) cancel(child, force, true);
}

}  // namespace rt::sim
