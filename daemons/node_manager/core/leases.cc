#include "daemons/node_manager/core/leases.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/utf8.h"
#include "daemons/node_manager/core/lease_round.h"
#include "daemons/node_manager/core/revocation.h"
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

Leases::Leases(const Parts& node) : node_(node) {}

Leases::~Leases() = default;

void Leases::refuse(OwnerId owner, uint64_t class_id, const std::string& message, Code code) {
  proto::LeaseNotice notice;
  notice.set_class_id(class_id);
  notice.set_fatal(true);
  notice.set_message(message);
  notice.set_code(static_cast<int>(code));
  node_.sink.notice(owner, notice);
}

Leases::Taken Leases::set_demand(OwnerId owner, const WorkerId& process,
                                 const proto::LeaseDemand& message, Now now) {
  Demand* known = queue_.find(owner, message.class_id());
  int want = std::clamp<int>(message.want(), 0, kMaxWant);
  if (want == 0 && !known) return Taken::kNo;
  if (std::string fault = want > 0 ? fault_of(message) : ""; !fault.empty()) {
    refuse(owner, message.class_id(), fault);
    return Taken::kNo;
  }
  if (message.runtime_env().size() > kMaxRuntimeEnvBytes) {
    refuse(owner, message.class_id(),
           fmt::format("a runtime environment of {} bytes is too large: {} are accepted",
                       message.runtime_env().size(), kMaxRuntimeEnvBytes),
           Code::kRuntimeEnvSetup);
    return Taken::kNo;
  }
  Demand* demand = queue_.find_or_add(owner, message.class_id(), node_.settings.max_lease_classes);
  if (!demand) {
    refuse(owner, message.class_id(),
           fmt::format("this process has tasks with more than {} different combinations of "
                       "resources, strategy and "
                       "runtime environment; raise the setting max_lease_classes",
                       node_.settings.max_lease_classes));
    return Taken::kNo;
  }
  if (want > 0) {
    demand->process = process;
    demand->resources = ResourceSet::from_proto(message.resources());
    demand->room = room_of(message.group_id(), message.bundle_index());
    demand->kind = {
        message.language(),
        message.language() == proto::LANGUAGE_PYTHON ? message.job().python_executable() : "",
        message.runtime_env(), demand->resources.units("GPU") > 0};
    demand->job = JobId::from_binary(message.job().job_id());
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
  const bool had = demand->want > 0;
  queue_.apply_demand(*demand, want, message.last_answer(), now);
  queue_.erase_if_unused(*demand);
  return had || want > 0 ? Taken::kChanged : Taken::kUnchanged;
}

std::string Leases::fault_of(const proto::LeaseDemand& demand) const {
  const JobId job = JobId::from_binary(demand.job().job_id());
  if (job.is_nil()) return "the lease demand names no job";
  if (!demand.job().outlives_job() && node_.finished_jobs.contains(job))
    return "the job of this task has finished";
  if (!proto::SchedulingStrategy_IsValid(demand.strategy()))
    return fmt::format("the scheduling strategy {} is not known",
                       static_cast<int>(demand.strategy()));
  if (!demand.group_id().empty() && GroupId::from_binary(demand.group_id()).is_nil())
    return "the lease demand has no valid placement group id";
  return "";
}

bool Leases::take_back(OwnerId owner, const proto::LeaseReturn& request, Now now) {
  const LeaseId id = request.lease_id();
  if (id < queue_.next_answer()) queue_.acknowledge_answers(owner, id);
  Lease* lease = queue_.find_lease(id);
  // The worker has died meanwhile, or the owner is mistaken.
  if (!lease || lease->owner != owner) return false;
  Worker& worker = *node_.workers.pool().find(lease->worker);
  if (request.worker_failed()) {
    node_.workers.dismiss(worker, proto::ExitInfo::UNKNOWN,
                          "the connection between it and the owner of its task broke", now);
  } else if (request.worker_leaves()) {
    node_.workers.begin_dying(worker, now);
    worker.room = RoomKey();  // it stays for what it owns only
    worker.intent.set_kind(proto::ExitInfo::INTENTIONAL);
    worker.intent.set_message("its function was called max_calls times");
  } else {
    end(id, true, now);
  }
  return true;
}

void Leases::end(LeaseId id, bool worker_stays, Now now) {
  Worker& worker = *node_.workers.pool().find(queue_.find_lease(id)->worker);
  node_.workers.release_held(worker);
  worker.lease = 0;
  if (worker_stays) {
    worker.room = RoomKey();
    node_.workers.pool().set_state(worker, WorkerState::kIdle, now);
  }
  queue_.remove_lease(id, now);
}

void Leases::owner_closed(OwnerId owner, Now now) {
  for (LeaseId id : queue_.leases_of(owner)) {
    // The worker may still run a task of the dead owner, and nobody can use the result.
    node_.workers.dismiss(*node_.workers.pool().find(queue_.find_lease(id)->worker),
                          proto::ExitInfo::OWNER_DIED, "the process that owned its task ended",
                          now);
  }
  queue_.erase_owner_demands(owner);
}

bool Leases::may_run_anywhere(const Demand& demand) const {
  if (demand.constraint)
    return !scheduling::allowed_nodes(*demand.constraint, demand.resources, node_.view.nodes())
                .nodes.empty();
  return feasible_here(demand.resources) ||
         ((!demand.no_spill || leaving_) && node_.view.feasible_elsewhere(demand.resources));
}

void Leases::flag_infeasible(Now now) {
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
    if (demand.infeasible.warned || now.steady_us - demand.infeasible.since_us <
                                        node_.settings.infeasible_warning_after_ms * 1000)
      continue;
    demand.infeasible.warned = true;
    proto::LeaseNotice notice;
    notice.set_class_id(demand.class_id);
    notice.set_infeasible(true);
    notice.set_message(describe_infeasible(demand));
    node_.sink.notice(demand.owner, notice);
  }
  if (changed) node_.sink.resources_changed();
}

std::string Leases::describe_infeasible(const Demand& demand) const {
  const std::string where =
      demand.constraint ? " on " + scheduling::describe(*demand.constraint) : "";
  return fmt::format(
      "{} needs {}{}, which no node of the cluster has: it waits until such a node "
      "joins ({})",
      demand.what.empty() ? "a task" : printable(demand.what),
      printable(demand.resources.to_string()), printable(where),
      printable(node_.view.describe(node_.rooms.node().resources().total())));
}

// ---- service

void Leases::serve(bool may_start, Now now) {
  if (!queue_.nobody_waits()) Round(*this, may_start, now).run();
}

void Leases::revoke_for_waiting(Now now) { Revocation(*this, now).run(); }

void Leases::warn_of_bounds(Now now) {
  for (const auto& [key, demand] : queue_.all()) {
    if (demand.want > 0 && demand.lacks == Demand::Lacks::kWorker)
      node_.workers.warn_of_bound(demand.kind, demand.job, demand.what, demand.waiting_since_us,
                                  now);
  }
}

void Leases::leave() {
  leaving_ = true;
  for (auto& [id, lease] : queue_.leases()) {
    if (std::exchange(lease.revoked, true)) continue;
    proto::LeaseRevoke revoke;
    revoke.add_lease_ids(id);
    node_.sink.revoke(lease.owner, revoke);
  }
}

// ---- ends

void Leases::drop(JobId job, Now now) {
  std::vector<LeaseQueue::Key> demands;
  for (const auto& [key, demand] : queue_.all()) {
    if (demand.job == job && !demand.outlives_job && demand.want > 0) demands.push_back(key);
  }
  for (const auto& [owner, class_id] : demands) {
    Demand& demand = *queue_.find(owner, class_id);
    queue_.set_want(demand, 0, now);
    queue_.erase_if_unused(demand);
  }
}

void Leases::fail(const WorkerKind& kind, const std::string& why, Code code, Now now) {
  std::vector<LeaseQueue::Key> waiting;
  for (const auto& [key, demand] : queue_.all()) {
    if (demand.want > 0 && demand.kind == kind) waiting.push_back(key);
  }
  for (const auto& [owner, class_id] : waiting) {
    Demand& demand = *queue_.find(owner, class_id);
    queue_.set_want(demand, 0, now);
    queue_.erase_if_unused(demand);
    refuse(owner, class_id, why, code);
  }
}

}  // namespace rt::node
