// NodeCore: demand, grants, redirects and revocation of leases.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "common/base/utf8.h"
#include "common/scheduling/policy.h"
#include "daemons/node_manager/core/node_core.h"
#include "daemons/node_manager/core/reservation.h"
#include "daemons/node_manager/core/runtime_env.h"

namespace rt::node {

using scheduling::Amount, scheduling::kNoNode, scheduling::NodeMask, scheduling::NodeSlot;

namespace {
// How long a demand for which no other node had room waits before the next search.
constexpr int64_t kRedirectRetryUs = 10'000;
// The same for a demand that has just been sent to wait at a node without room.
constexpr int64_t kFeasibleElsewhereRetryUs = 1'000'000;
// The owner may have heard of a new node before this node-manager has.
constexpr int64_t kUnknownNodeGraceUs = 1'000'000;
// No process runs so many tasks at once. Owners that ask for more do not overflow what is counted.
constexpr int kMaxWant = 1'000'000;
// A demand is starved when it has waited for this many times lease_revoke_after_ms.
constexpr int kStarvedAfterRevokes = 10;
}  // namespace

// One pass over the waiting demands: what this node and its peers have left to give in this pass,
// and the redirects, which are gathered into one message per (demand, node).
class NodeCore::Round {
 public:
  Round(NodeCore& core, Now now)
      : core_(core),
        planned_(core.draining_ ? ResourceSet() : core.resources_.available()),
        now_(now) {}

  void send_redirects() {
    for (const auto& [where, count] : redirects_) {
      const auto& [key, node] = where;
      auto peer = core_.view_.peers().find(node);
      RT_CHECK(peer != core_.view_.peers().end());
      proto::LeaseRedirect message;
      message.set_class_id(key.second);
      *message.mutable_node() = peer->second.node;
      message.set_count(count);
      message.set_answer(
          core_.queue_.number_redirect(*core_.queue_.find(key.first, key.second), count));
      core_.sink_.redirect(key.first, message);
    }
  }

  // Tries to find a worker or another node for one lease of the demand.
  Served serve(Demand& demand);

  ResourceSet& planned() { return planned_; }

  // Sets aside what a starved demand needs, as far as the rules of reservation.h allow.
  void set_aside(const ResourceSet& request) {
    if (!prospect_) look_ahead();
    if (!prospect_->covers(request)) return;
    planned_.subtract_allowing_debt(request);
    if (!without_parents_->covers(request)) left_to_children_.add(request);
  }
  // Returns the part of what has been set aside that is not kept from this demand (rule 3).
  ResourceSet left_to(const Demand& demand) const {
    return parents_.contains(demand.process) ? left_to_children_ : ResourceSet();
  }

 private:
  Served serve_constrained(Demand& demand);
  Served send_to(Demand& demand, NodeSlot node);
  // Where demands may be placed in this pass.
  const scheduling::Nodes& nodes();
  // Returns the node of `among` for the demand's next lease, or kNoNode if there is none.
  NodeSlot choose(const Demand& demand, NodeMask among, const NodeMask& preferred = {});
  // True if no other node can be a better place for the demand than this one, which has room.
  bool stays_here(const Demand& demand) const;

  void look_ahead() {
    prospect_.emplace(core_.resources_.available(), core_.gpus_);
    without_parents_ = prospect_;
    std::set<WorkerId> askers;
    for (const auto& [key, demand] : core_.queue_.all()) {
      if (demand.want > 0 && !demand.process.is_nil()) askers.insert(demand.process);
    }
    for (const auto& [id, worker] : core_.pool_.all()) {
      if (worker->state != WorkerState::kLeased || worker->blocked) continue;
      prospect_->add(worker->held, worker->gpus);
      if (askers.contains(id)) {
        parents_.insert(id);
      } else {
        without_parents_->add(worker->held, worker->gpus);
      }
    }
    // An actor gives back what it needs only until its constructor has run.
    for (const auto& [id, actor] : core_.actors_) {
      const Worker* worker =
          actor.state == HostedActor::State::kStarting ? core_.pool_.find(actor.worker) : nullptr;
      if (!worker || worker->state != WorkerState::kActor || worker->blocked) continue;
      ResourceSet placing = actor.placement;
      placing.subtract(actor.lifetime);
      prospect_->add(placing, {});
      if (askers.contains(worker->id)) {
        parents_.insert(worker->id);
      } else {
        without_parents_->add(placing, {});
      }
    }
  }

  NodeCore& core_;
  // The free resources of this node, less the grants of this pass and those set aside for starved
  // demands and for demands whose workers are starting.
  ResourceSet planned_;
  Now now_;
  // Keyed by value, not by address, so that the order of messages is the same in every run.
  std::map<std::pair<LeaseQueue::Key, NodeId>, int> redirects_;
  // The resources that come back by themselves, and the same without what parents hold. Parents are
  // processes that run a task and have a demand of their own here.
  std::optional<Prospect> prospect_, without_parents_;
  std::set<WorkerId> parents_;
  ResourceSet left_to_children_;  // the part of what is set aside that only parents can complete
};

const scheduling::Nodes& NodeCore::Round::nodes() {
  if (core_.view_.self() != kNoNode) core_.view_.set_free_here(planned_);
  return core_.view_.nodes();
}

NodeSlot NodeCore::Round::choose(const Demand& demand, NodeMask among, const NodeMask& preferred) {
  const NodeSlot node =
      scheduling::choose(core_.view_.nodes(),
                         {.resources = demand.resources,
                          .strategy = demand.strategy,
                          .spread_threshold = core_.settings_.scheduler_spread_threshold,
                          .near = core_.view_.self(),
                          .last = core_.spread_last_},
                         std::move(among), preferred);
  if (node != kNoNode && demand.strategy == proto::SPREAD) core_.spread_last_ = node;
  return node;
}

bool NodeCore::Round::stays_here(const Demand& demand) const {
  if (demand.no_spill || core_.view_.peers().empty()) return true;
  if (demand.strategy != proto::DEFAULT) return false;
  if (!core_.gpus_.empty() && demand.resources.units("GPU") == 0) return false;
  return scheduling::utilisation(core_.resources_.total(), planned_, demand.resources) <=
         core_.settings_.scheduler_spread_threshold;
}

NodeCore::Served NodeCore::Round::serve(Demand& demand) {
  if (demand.constraint) return serve_constrained(demand);
  const NodeSlot last = core_.spread_last_;
  const bool fits = !core_.draining_ && planned_.contains(demand.resources);
  if (fits && stays_here(demand)) return core_.serve_here(demand, *this, last, now_);
  if ((demand.no_spill && !core_.draining_) || core_.view_.peers().empty() ||
      (!fits && now_.steady_us < demand.next_redirect_us))
    return Served::kNoRoom;
  const scheduling::Nodes& nodes = this->nodes();
  NodeSlot node = choose(demand, nodes.open() & nodes.having(demand.resources, Amount::kFree));
  if (node == kNoNode) {
    // A demand that this node can never serve waits at a node that can.
    if (!core_.feasible_here(demand.resources))
      node = choose(demand, nodes.open() & nodes.having(demand.resources, Amount::kTotal));
    demand.next_redirect_us =
        now_.steady_us + (node == kNoNode ? kRedirectRetryUs : kFeasibleElsewhereRetryUs);
  }
  if (node == kNoNode) return Served::kNoRoom;
  return node == core_.view_.self() ? core_.serve_here(demand, *this, last, now_)
                                    : send_to(demand, node);
}

NodeCore::Served NodeCore::Round::send_to(Demand& demand, NodeSlot node) {
  const NodeId id = core_.view_.nodes().id(node);
  core_.view_.redirected(id, demand.resources, now_.steady_us);
  ++redirects_[{{demand.owner, demand.class_id}, id}];
  core_.queue_.set_want(demand, demand.want - 1, now_.steady_us);
  return Served::kRedirected;
}

NodeCore::Served NodeCore::Round::serve_constrained(Demand& demand) {
  using Verdict = scheduling::AllowedNodes::Verdict;
  const NodeSlot last = core_.spread_last_;
  const scheduling::Nodes& nodes = this->nodes();
  const scheduling::AllowedNodes allowed =
      scheduling::allowed_nodes(*demand.constraint, demand.resources, nodes);
  demand.target.excludes_this_node = !allowed.nodes.contains(core_.view_.self());
  if (allowed.verdict == Verdict::kGone) {
    if (demand.target.unknown_since_us < 0) demand.target.unknown_since_us = now_.steady_us;
    if (now_.steady_us - demand.target.unknown_since_us < kUnknownNodeGraceUs)
      return Served::kNoRoom;
    core_.fail_demand(
        demand,
        fmt::format("The node {} specified via NodeAffinitySchedulingStrategy doesn't "
                    "exist any more or is not known, and soft=False was given.",
                    to_hex(demand.constraint->node_id())),
        now_);
    return Served::kNoRoom;
  }
  demand.target.unknown_since_us = -1;
  if (allowed.verdict == Verdict::kTooSmall) {
    core_.fail_demand(
        demand,
        fmt::format("The node {} specified via NodeAffinitySchedulingStrategy doesn't have "
                    "{}, and soft=False was given.",
                    to_hex(demand.constraint->node_id()), demand.resources.to_string()),
        now_);
    return Served::kNoRoom;
  }
  NodeSlot node =
      choose(demand, allowed.nodes & nodes.open() & nodes.having(demand.resources, Amount::kFree),
             allowed.preferred);
  if (node == kNoNode && demand.constraint->fail_on_unavailable()) {
    core_.fail_demand(
        demand,
        fmt::format("The node {} specified via NodeAffinitySchedulingStrategy has no room "
                    "for {} now, and _fail_on_unavailable was given.",
                    to_hex(demand.constraint->node_id()), demand.resources.to_string()),
        now_);
    return Served::kNoRoom;
  }
  // A demand that may run on this node waits here; any other is sent to wait at an allowed node.
  if (node == kNoNode && demand.target.excludes_this_node && !allowed.nodes.empty() &&
      now_.steady_us >= demand.next_redirect_us) {
    demand.next_redirect_us = now_.steady_us + kFeasibleElsewhereRetryUs;
    node = choose(demand, allowed.nodes, allowed.preferred);
  }
  if (node == kNoNode) return Served::kNoRoom;
  return node == core_.view_.self() ? core_.serve_here(demand, *this, last, now_)
                                    : send_to(demand, node);
}

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
    demand->kind = {
        message.language(),
        message.language() == proto::LANGUAGE_PYTHON ? message.job().python_executable() : "",
        message.runtime_env()};
    demand->job = job;
    demand->outlives_job = message.job().outlives_job();
    demand->strategy = message.strategy();
    // A demand that was redirected here has had its constraint applied by the other node. Only
    // fail_on_unavailable still has a meaning.
    bool constrained = message.has_constraint() && scheduling::constrains(message.constraint()) &&
                       (!message.no_spill() || message.constraint().fail_on_unavailable());
    demand->constraint =
        constrained ? std::make_unique<proto::NodeConstraint>(message.constraint()) : nullptr;
    demand->target.excludes_this_node = false;
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

void NodeCore::serve_leases(Now now) {
  if (queue_.nobody_waits()) return;
  const int64_t starved_after = settings_.lease_revoke_after_ms * 1000 * kStarvedAfterRevokes;
  std::vector<Demand*> order = queue_.fair_order(now.steady_us - starved_after);
  Round round(*this, now);
  while (!order.empty()) {
    // Each demand gets one lease per iteration, so that a large one does not take everything.
    std::erase_if(order, [&](Demand* demand) {
      const ResourceSet left = round.left_to(*demand);
      round.planned().add(left);
      Served served = round.serve(*demand);
      round.planned().subtract_allowing_debt(left);
      demand->lacks =
          served == Served::kNoWorker ? Demand::Lacks::kWorker : Demand::Lacks::kResources;
      if (served == Served::kNoRoom) {
        if (demand->want == 0 || !may_run_here(*demand)) return true;
        if (resources_.fits(demand->resources) &&
            (gpus_.empty() || gpus_.fits(demand->resources.units("GPU"))))
          demand->lacks = Demand::Lacks::kTurn;
        // Set aside what a starved demand needs, so that smaller ones behind it do not take it.
        if (may_set_aside(now.steady_us - demand->waiting_since_us, starved_after))
          round.set_aside(demand->resources);
        return true;
      }
      return served == Served::kNoWorker || demand->want == 0;
    });
  }
  round.send_redirects();
  std::vector<Demand*> done;
  for (auto& [key, demand] : queue_.all()) {
    if (demand.want == 0 && demand.leases == 0) done.push_back(&demand);
  }
  for (Demand* demand : done) queue_.erase_if_unused(*demand);
}

void NodeCore::fail_demand(Demand& demand, const std::string& message, Now now) {
  refuse(demand.owner, demand.class_id, message, Code::kUnschedulable);
  demand.target.unknown_since_us = -1;
  queue_.set_want(demand, 0, now.steady_us);
}

NodeCore::Served NodeCore::serve_here(Demand& demand, Round& round, NodeSlot last, Now now) {
  if (!gpus_.empty() && !gpus_.fits(demand.resources.units("GPU")))
    return Served::kNoRoom;  // enough is free in sum, but on no single device
  Worker* worker = pool_.idle_for(demand.kind, demand.job, demand.outlives_job);
  if (!worker) {
    spread_last_ = last;  // so that it is still this node's turn when the process has started
    // Request processes for all that the demand still wants, and set its resources aside while
    // they start. A demand without resources has no such bound and is limited by the concurrency.
    // No more processes for tasks can be started in one pass.
    const auto most = static_cast<int>(std::min<int64_t>(demand.want, settings_.max_workers));
    for (int i = 0; i < most && round.planned().contains(demand.resources); ++i) {
      starts_.need_for_task(demand.kind);
      if (started_ && !starts_.backs_off(demand.kind, now))
        round.planned().subtract_allowing_debt(demand.resources);
      if (demand.resources.empty() && i >= settings_.worker_start_concurrency) break;
    }
    return Served::kNoWorker;
  }
  round.planned().subtract_allowing_debt(demand.resources);
  grant(demand, *worker, now);
  return Served::kGranted;
}

void NodeCore::grant(Demand& demand, Worker& worker, Now now) {
  count_grant(now.steady_us - demand.waiting_since_us);
  resources_.acquire(demand.resources);
  pool_.set_state(worker, WorkerState::kLeased, now.steady_us);
  worker.job = demand.job;
  worker.outlives_job = demand.outlives_job;
  worker.held = demand.resources;
  if (!gpus_.empty()) worker.gpus = gpus_.take(demand.resources.units("GPU"));
  Lease& lease = queue_.add_lease(demand, worker.id, now.steady_us);
  worker.lease = lease.id;
  demand.infeasible.since_us = -1;
  proto::LeaseGrant grant;
  grant.set_class_id(demand.class_id);
  grant.set_lease_id(lease.id);
  *grant.mutable_worker() = address_of(worker);
  grant.set_pid(worker.pid);
  for (std::string& name : gpus_.names(worker.gpus)) grant.add_gpu_ids(std::move(name));
  sink_.grant(demand.owner, grant);
}

void NodeCore::return_lease(OwnerId owner, const proto::LeaseReturn& request, Now now) {
  const LeaseId id = request.lease_id();
  if (id < queue_.next_answer()) queue_.acknowledge_answers(owner, id);
  Lease* lease = queue_.find_lease(id);
  // The worker has died meanwhile, or the owner is mistaken.
  if (!lease || lease->owner != owner) return;
  Worker& worker = *pool_.find(lease->worker);
  if (request.worker_failed()) {
    dismiss_worker(worker, proto::ExitInfo::UNKNOWN,
                   "the connection between it and the owner of its task broke", now);
  } else if (request.worker_leaves()) {
    begin_dying(worker, now);
    worker.intent.set_kind(proto::ExitInfo::INTENTIONAL);
    worker.intent.set_message("its function was called max_calls times");
  } else {
    end_lease(id, true, now);
  }
  pump(now);
}

void NodeCore::end_lease(LeaseId id, bool worker_stays, Now now) {
  Worker& worker = *pool_.find(queue_.find_lease(id)->worker);
  release_held(worker);
  worker.lease = 0;
  if (worker_stays) pool_.set_state(worker, WorkerState::kIdle, now.steady_us);
  queue_.remove_lease(id, now.steady_us);
}

void NodeCore::owner_closed(OwnerId owner, Now now) {
  for (LeaseId id : queue_.leases_of(owner)) {
    // The worker may still run a task of the dead owner, and nobody can use the result.
    dismiss_worker(*pool_.find(queue_.find_lease(id)->worker), proto::ExitInfo::OWNER_DIED,
                   "the process that owned its task ended", now);
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
         ((!demand.no_spill || draining_) && view_.feasible_elsewhere(demand.resources));
}

void NodeCore::flag_infeasible(Now now) {
  if (queue_.nobody_waits()) return;
  bool changed = false;
  for (auto& [key, demand] : queue_.all()) {
    if (demand.want == 0) continue;
    if (may_run_anywhere(demand)) {
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
        printable(view_.describe(resources_.total()))));
    sink_.notice(demand.owner, notice);
  }
  if (changed) sink_.resources_changed();
}

ResourceSet NodeCore::releasable_resources(const Worker& worker) const {
  ResourceSet held = worker.held;
  if (worker.blocked) held.subtract(cpu_part(worker.held));
  return held;
}

void NodeCore::revoke_for_waiting(Now now) {
  int64_t before = now.steady_us - settings_.lease_revoke_after_ms * 1000;
  for (const ActorId& id : waiting_actors_) {
    const HostedActor& actor = actors_.at(id);
    if (actor.state == HostedActor::State::kWaitingResources && actor.since_us <= before)
      revoke_for(actor.placement, 0, nullptr);
  }
  for (auto& [key, demand] : queue_.all()) {
    if (demand.want == 0 || demand.waiting_since_us > before) continue;
    if (may_run_here(demand)) revoke_for(demand.resources, demand.leases, &demand);
  }
}

// Revokes enough leases for `request` to fit, from the demands that hold most. A waiter that holds
// leases itself only takes from demands that hold at least two more; otherwise two waiters would
// keep taking from each other.
void NodeCore::revoke_for(const ResourceSet& request, int own_leases, const Demand* waiter) {
  ResourceSet expected = resources_.available();
  for (const auto& [id, lease] : queue_.leases()) {
    if (lease.revoked) expected.add(releasable_resources(*pool_.find(lease.worker)));
  }
  while (!expected.contains(request)) {
    Lease* victim = nullptr;
    int victim_leases = own_leases == 0 ? 0 : own_leases + 1;
    for (auto& [id, lease] : queue_.leases()) {
      if (lease.revoked) continue;
      const Demand* holder = queue_.find(lease.owner, lease.class_id);
      if (holder == waiter || holder->leases <= victim_leases) continue;
      ResourceSet gives = releasable_resources(*pool_.find(lease.worker));
      bool helps = false;
      for (const auto& [name, wanted] : request.all())
        helps |= expected.units(name) < wanted && gives.units(name) > 0;
      if (!helps) continue;
      victim = &lease;
      victim_leases = holder->leases;
    }
    if (!victim) return;
    victim->revoked = true;
    expected.add(releasable_resources(*pool_.find(victim->worker)));
    proto::LeaseRevoke revoke;
    revoke.add_lease_ids(victim->id);
    sink_.revoke(victim->owner, revoke);
  }
}

}  // namespace rt::node
