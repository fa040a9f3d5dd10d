// NodeCore: demands, and the leases that are out.
#include <fmt/core.h>

#include <algorithm>

#include "common/base/utf8.h"
#include "daemons/node_manager/core/node_core.h"
#include "daemons/node_manager/core/runtime_env.h"

namespace rt::node {

namespace {
// No process runs so many tasks at once. Owners that ask for more do not overflow what is counted.
constexpr int kMaxWant = 1'000'000;

RoomKey room_of(const std::string& group, int bundle_index) {
  if (group.empty()) return {};
  return {GroupId::from_binary(group), std::max(bundle_index, -1)};
}

}  // namespace

void NodeCore::refuse(OwnerId owner, uint64_t class_id, const std::string& message, Code code) {
  proto::LeaseNotice notice;
  notice.set_class_id(class_id);
  notice.set_fatal(true);
  notice.set_message(message);
  notice.set_code(static_cast<int>(code));
  sink_.notice(owner, notice);
}

void NodeCore::set_demand(OwnerId owner, const WorkerId& process, const proto::LeaseDemand& message,
                          Now now) {
  Demand* known = queue_.find(owner, message.class_id());
  int want = std::clamp<int>(message.want(), 0, kMaxWant);
  if (want == 0 && !known) return;
  JobId job = JobId::from_binary(message.job().job_id());
  if (want > 0) {
    if (job.is_nil()) return refuse(owner, message.class_id(), "the lease demand names no job");
    if (finished_jobs_.contains(job) && !message.job().outlives_job())
      return refuse(owner, message.class_id(), "the job of this task has finished");
    if (!proto::SchedulingStrategy_IsValid(message.strategy()))
      return refuse(owner, message.class_id(),
                    fmt::format("the scheduling strategy {} is not known",
                                static_cast<int>(message.strategy())));
    if (!message.group_id().empty() && GroupId::from_binary(message.group_id()).is_nil())
      return refuse(owner, message.class_id(), "the lease demand has no valid placement group id");
  }
  if (message.runtime_env().size() > kMaxRuntimeEnvBytes)
    return refuse(owner, message.class_id(),
                  fmt::format("a runtime environment of {} bytes is too large: {} are accepted",
                              message.runtime_env().size(), kMaxRuntimeEnvBytes),
                  Code::kRuntimeEnvSetup);
  Demand* demand = queue_.find_or_add(owner, message.class_id(), settings_.max_lease_classes);
  if (!demand)
    return refuse(owner, message.class_id(),
                  fmt::format("this process has tasks with more than {} different combinations of "
                              "resources, strategy and "
                              "runtime environment; raise the setting max_lease_classes",
                              settings_.max_lease_classes));
  if (want > 0) {
    demand->process = process;
    demand->resources = ResourceSet::from_proto(message.resources());
    demand->room = room_of(message.group_id(), message.bundle_index());
    demand->kind = {
        message.language(),
        message.language() == proto::LANGUAGE_PYTHON ? message.job().python_executable() : "",
        message.runtime_env(), demand->resources.units("GPU") > 0};
    demand->job = job;
    demand->outlives_job = message.job().outlives_job();
    demand->strategy = message.strategy();
    // A demand that was redirected here has had its constraint applied by the other node. Only
    // fail_on_unavailable still has a meaning.
    bool constrained = message.has_constraint() && scheduling::constrains(message.constraint()) &&
                       (!message.no_spill() || message.constraint().fail_on_unavailable() ||
                        !demand->room.is_node());
    demand->constraint =
        constrained ? std::make_unique<proto::NodeConstraint>(message.constraint()) : nullptr;
    demand->target.excludes_this_node = false;
    demand->target.newest_epoch = message.group_epoch();
    demand->what = message.what();
    demand->no_spill = message.no_spill();
  }
  demand->backlog = message.backlog();
  bool had = demand->want > 0;
  queue_.apply_demand(*demand, want, message.last_answer(), now.steady_us);
  queue_.erase_if_unused(*demand);
  pump(now);
  if (had || want > 0) sink_.resources_changed();
}

void NodeCore::return_lease(OwnerId owner, const proto::LeaseReturn& request, Now now) {
  const LeaseId id = request.lease_id();
  if (id < queue_.next_answer()) queue_.acknowledge_answers(owner, id);
  Lease* lease = queue_.find_lease(id);
  // The worker has died meanwhile, or the owner is mistaken.
  if (!lease || lease->owner != owner) return;
  Worker& worker = *workers_.pool().find(lease->worker);
  if (request.worker_failed()) {
    workers_.dismiss(worker, proto::ExitInfo::UNKNOWN,
                     "the connection between it and the owner of its task broke", now);
  } else if (request.worker_leaves()) {
    workers_.begin_dying(worker, now);
    worker.room = RoomKey();  // it stays for what it owns only
    worker.intent.set_kind(proto::ExitInfo::INTENTIONAL);
    worker.intent.set_message("its function was called max_calls times");
  } else {
    end_lease(id, true, now);
  }
  pump(now);
}

void NodeCore::end_lease(LeaseId id, bool worker_stays, Now now) {
  Worker& worker = *workers_.pool().find(queue_.find_lease(id)->worker);
  release_held(worker);
  worker.lease = 0;
  if (worker_stays) {
    worker.room = RoomKey();
    workers_.pool().set_state(worker, WorkerState::kIdle, now.steady_us);
  }
  queue_.remove_lease(id, now.steady_us);
}

void NodeCore::owner_closed(OwnerId owner, Now now) {
  for (LeaseId id : queue_.leases_of(owner)) {
    // The worker may still run a task of the dead owner, and nobody can use the result.
    workers_.dismiss(*workers_.pool().find(queue_.find_lease(id)->worker),
                     proto::ExitInfo::OWNER_DIED, "the process that owned its task ended", now);
  }
  queue_.erase_owner_demands(owner);
  pump(now);
  sink_.resources_changed();
}

bool NodeCore::may_run_anywhere(const Demand& demand) const {
  if (demand.constraint)
    return !scheduling::allowed_nodes(*demand.constraint, demand.resources, view_.nodes())
                .nodes.empty();
  return feasible_here(demand.resources) ||
         ((!demand.no_spill || drain_) && view_.feasible_elsewhere(demand.resources));
}

void NodeCore::flag_infeasible(Now now) {
  if (queue_.nobody_waits()) return;
  bool changed = false;
  for (auto& [key, demand] : queue_.all()) {
    if (demand.want == 0) continue;
    // Whether a group can be placed is for the head to say.
    if (!demand.room.is_node() || may_run_anywhere(demand)) {
      changed |= demand.infeasible.since_us >= 0;
      demand.infeasible = {};
      continue;
    }
    if (demand.infeasible.since_us < 0) {
      demand.infeasible.since_us = now.steady_us;
      changed = true;
    }
    if (demand.infeasible.warned ||
        now.steady_us - demand.infeasible.since_us < settings_.infeasible_warning_after_ms * 1000)
      continue;
    demand.infeasible.warned = true;
    proto::LeaseNotice notice;
    notice.set_class_id(demand.class_id);
    notice.set_infeasible(true);
    std::string where = demand.constraint ? " on " + scheduling::describe(*demand.constraint) : "";
    notice.set_message(fmt::format(
        "{} needs {}{}, which no node of the cluster has: it waits until such a node joins ({})",
        demand.what.empty() ? "a task" : printable(demand.what),
        printable(demand.resources.to_string()), where,
        printable(view_.describe(resources().total()))));
    sink_.notice(demand.owner, notice);
  }
  if (changed) sink_.resources_changed();
}

ResourceSet NodeCore::releasable_resources(const Worker& worker) const {
  ResourceSet held = worker.held;
  if (worker.blocked) held.subtract(cpu_part(worker.held));
  return held;
}

}  // namespace rt::node
