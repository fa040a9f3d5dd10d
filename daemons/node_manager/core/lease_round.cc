#include "daemons/node_manager/core/lease_round.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/scheduling/policy.h"

namespace rt::node {

using scheduling::Amount, scheduling::kNoNode, scheduling::NodeMask, scheduling::NodeSlot;

namespace {
// How long a demand for which no other node had room waits before the next search.
constexpr int64_t kRedirectRetryUs = 10'000;
// The same for a demand that has just been sent to wait at a node without room.
constexpr int64_t kFeasibleElsewhereRetryUs = 1'000'000;
// The owner may have heard of a new node before this node-manager has.
constexpr int64_t kUnknownNodeGraceUs = 1'000'000;
// A demand is starved when it has waited for this many times lease_revoke_after_ms.
constexpr int kStarvedAfterRevokes = 10;

void count_grant(proto::NodeCounters& counters, int64_t waited_us) {
  double waited_ms = static_cast<double>(std::max<int64_t>(0, waited_us)) / 1000;
  if (counters.lease_wait_size() == 0)
    counters.mutable_lease_wait()->Resize(static_cast<int>(std::size(kLeaseWaitBoundsMs)) + 1, 0);
  auto bucket =
      std::lower_bound(std::begin(kLeaseWaitBoundsMs), std::end(kLeaseWaitBoundsMs), waited_ms) -
      std::begin(kLeaseWaitBoundsMs);
  int64_t& count = *counters.mutable_lease_wait()->Mutable(static_cast<int>(bucket));
  ++count;
  counters.set_lease_wait_ms(counters.lease_wait_ms() + waited_ms);
  counters.set_leases_granted(counters.leases_granted() + 1);
}

}  // namespace

class NodeCore::Round::Loan {
 public:
  Loan(Plan& plan, const Demand& demand) : plan_(plan) {
    if (!plan.parents.contains(demand.process)) return;
    left_ = plan.left_to_children;
    plan.planned.add(left_);
  }
  ~Loan() { plan_.planned.subtract_allowing_debt(left_); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

 private:
  Plan& plan_;
  ResourceSet left_;
};

void NodeCore::Round::run() {
  const int64_t starved_after = core_.settings_.lease_revoke_after_ms * 1000 * kStarvedAfterRevokes;
  std::vector<Demand*> order = core_.queue_.fair_order(now_.steady_us - starved_after);
  while (!order.empty()) {
    // Each demand gets one lease per iteration, so that a large one does not take everything.
    std::erase_if(order, [&](Demand* demand) {
      Served served = serve(*demand);
      demand->lacks =
          served == Served::kNoWorker ? Demand::Lacks::kWorker : Demand::Lacks::kResources;
      if (served == Served::kNoRoom && demand->want > 0) keep_waiting(*demand);
      return served == Served::kNoRoom || served == Served::kNoWorker || demand->want == 0;
    });
  }
  send_redirects();
  std::vector<Demand*> done;
  for (auto& [key, demand] : core_.queue_.all()) {
    if (demand.want == 0 && demand.leases == 0) done.push_back(&demand);
  }
  for (Demand* demand : done) core_.queue_.erase_if_unused(*demand);
}

// ---- what is left to give

NodeCore::Round::Plan& NodeCore::Round::plan_of(const RoomKey& key) {
  if (auto known = plans_.find(key); known != plans_.end()) return known->second;
  const Room& room = core_.rooms_.at(key);
  Plan plan{key, &room, core_.drain_ ? ResourceSet() : room.resources().available()};
  if (key.is_node()) plan.planned.subtract_allowing_debt(core_.bundle_line_.aside());
  return plans_.emplace(key, std::move(plan)).first->second;
}

NodeCore::Round::Search& NodeCore::Round::search_of(const Demand& demand) {
  auto [it, is_new] = searches_.try_emplace({demand.owner, demand.class_id});
  if (is_new && !core_.drain_)
    it->second.rooms = core_.rooms_.bundles().candidates(demand.room, demand.resources,
                                                         demand.target.newest_epoch);
  return it->second;
}

void NodeCore::Round::look_ahead(Plan& plan) {
  plan.prospect.emplace(*plan.room);
  plan.without_parents = plan.prospect;
  std::set<WorkerId> askers;
  for (const auto& [key, demand] : core_.queue_.all()) {
    if (demand.want > 0 && !demand.process.is_nil()) askers.insert(demand.process);
  }
  for (const auto& [id, worker] : core_.workers_.pool().all()) {
    if (worker->state != WorkerState::kLeased || worker->blocked || worker->room != plan.key)
      continue;
    plan.prospect->add(worker->held, worker->gpus);
    if (askers.contains(id)) {
      plan.parents.insert(id);
    } else {
      plan.without_parents->add(worker->held, worker->gpus);
    }
  }
  // An actor gives back what it needs only until its constructor has run.
  for (const auto& [id, actor] : core_.actors_.all()) {
    const Worker* worker = actor.state == HostedActor::State::kStarting
                               ? core_.workers_.pool().find(actor.worker)
                               : nullptr;
    if (!worker || worker->state != WorkerState::kActor || worker->blocked ||
        worker->room != plan.key)
      continue;
    ResourceSet placing = actor.placement;
    placing.subtract(actor.lifetime);
    plan.prospect->add(placing, {});
    if (askers.contains(worker->id)) {
      plan.parents.insert(worker->id);
    } else {
      plan.without_parents->add(placing, {});
    }
  }
}

bool NodeCore::Round::set_aside(Plan& plan, const ResourceSet& request) {
  if (!plan.prospect) look_ahead(plan);
  if (!plan.prospect->covers(request)) return false;
  plan.planned.subtract_allowing_debt(request);
  if (!plan.without_parents->covers(request)) plan.left_to_children.add(request);
  return true;
}

void NodeCore::Round::keep_waiting(Demand& demand) {
  if (demand.room.is_node() && !core_.may_run_here(demand)) return;
  if (!demand.room.is_node() && demand.not_here()) return;
  const std::vector<RoomKey> rooms =
      demand.room.is_node() ? std::vector{RoomKey()} : search_of(demand).rooms;
  for (const RoomKey& key : rooms) {
    if (core_.rooms_.at(key).fits(demand.resources)) demand.lacks = Demand::Lacks::kTurn;
  }
  // Smaller demands behind a starved one must not take what it needs.
  if (!may_set_aside(now_.steady_us - demand.waiting_since_us,
                     core_.settings_.lease_revoke_after_ms * 1000 * kStarvedAfterRevokes))
    return;
  for (const RoomKey& key : rooms) {
    if (set_aside(plan_of(key), demand.resources)) return;
  }
}

// ---- one lease

NodeCore::Round::Served NodeCore::Round::serve(Demand& demand) {
  if (!demand.room.is_node()) return serve_in_group(demand);
  Plan& plan = plan_of(RoomKey());
  Loan loan(plan, demand);
  return demand.constraint ? serve_constrained(demand, plan) : serve_unconstrained(demand, plan);
}

NodeCore::Round::Served NodeCore::Round::serve_unconstrained(Demand& demand, Plan& plan) {
  const NodeSlot last = core_.spread_last_;
  const bool fits = !core_.drain_ && plan.planned.contains(demand.resources);
  if (fits && stays_here(demand, plan)) return serve_here(demand, plan, last);
  if ((demand.no_spill && !core_.drain_) || core_.view_.peers().empty() ||
      (!fits && now_.steady_us < demand.target.next_redirect_us))
    return Served::kNoRoom;
  const scheduling::Nodes& nodes = this->nodes(plan);
  NodeSlot node = choose(demand, nodes.open() & nodes.having(demand.resources, Amount::kFree));
  if (node == kNoNode) {
    // A demand that this node can never serve waits at a node that can.
    if (!core_.feasible_here(demand.resources))
      node = choose(demand, nodes.open() & nodes.having(demand.resources, Amount::kTotal));
    demand.target.next_redirect_us =
        now_.steady_us + (node == kNoNode ? kRedirectRetryUs : kFeasibleElsewhereRetryUs);
  }
  if (node == kNoNode) return Served::kNoRoom;
  return node == core_.view_.self() ? serve_here(demand, plan, last) : send_to(demand, node);
}

NodeCore::Round::Served NodeCore::Round::serve_constrained(Demand& demand, Plan& plan) {
  using Verdict = scheduling::AllowedNodes::Verdict;
  const NodeSlot last = core_.spread_last_;
  const scheduling::Nodes& nodes = this->nodes(plan);
  const scheduling::AllowedNodes allowed =
      scheduling::allowed_nodes(*demand.constraint, demand.resources, nodes);
  demand.target.excludes_this_node = !allowed.nodes.contains(core_.view_.self());
  if (allowed.verdict == Verdict::kGone) {
    if (demand.target.unknown_since_us < 0) demand.target.unknown_since_us = now_.steady_us;
    if (now_.steady_us - demand.target.unknown_since_us < kUnknownNodeGraceUs)
      return Served::kNoRoom;
    fail(demand, fmt::format("The node {} specified via NodeAffinitySchedulingStrategy doesn't "
                             "exist any more or is not known, and soft=False was given.",
                             to_hex(demand.constraint->node_id())));
    return Served::kNoRoom;
  }
  demand.target.unknown_since_us = -1;
  if (allowed.verdict == Verdict::kTooSmall) {
    fail(demand, fmt::format("The node {} specified via NodeAffinitySchedulingStrategy doesn't "
                             "have {}, and soft=False was given.",
                             to_hex(demand.constraint->node_id()), demand.resources.to_string()));
    return Served::kNoRoom;
  }
  NodeSlot node =
      choose(demand, allowed.nodes & nodes.open() & nodes.having(demand.resources, Amount::kFree),
             allowed.preferred);
  if (node == kNoNode && demand.constraint->fail_on_unavailable()) {
    fail(demand, fmt::format("The node {} specified via NodeAffinitySchedulingStrategy has no "
                             "room for {} now, and _fail_on_unavailable was given.",
                             to_hex(demand.constraint->node_id()), demand.resources.to_string()));
    return Served::kNoRoom;
  }
  // A demand that may run on this node waits here; any other is sent to wait at an allowed node.
  if (node == kNoNode && demand.target.excludes_this_node && !allowed.nodes.empty() &&
      now_.steady_us >= demand.target.next_redirect_us) {
    demand.target.next_redirect_us = now_.steady_us + kFeasibleElsewhereRetryUs;
    node = choose(demand, allowed.nodes, allowed.preferred);
  }
  if (node == kNoNode) return Served::kNoRoom;
  return node == core_.view_.self() ? serve_here(demand, plan, last) : send_to(demand, node);
}

// The group has chosen the node already, so that a constraint which excludes it leaves nothing to
// do but to wait.
NodeCore::Round::Served NodeCore::Round::serve_in_group(Demand& demand) {
  demand.target.excludes_this_node =
      demand.constraint && !scheduling::where_of(demand.constraint.get()).empty() &&
      !scheduling::allowed_nodes(*demand.constraint, {}, core_.view_.nodes())
           .nodes.contains(core_.view_.self());
  if (demand.not_here()) return Served::kNoRoom;
  Search& search = search_of(demand);
  Worker* worker = nullptr;
  // No more processes for tasks can be started in one pass.
  int most = static_cast<int>(std::min<int64_t>(demand.want, core_.settings_.max_workers));
  Served served = Served::kNoRoom;
  for (size_t i = search.first; i < search.rooms.size() && most > 0; ++i) {
    Plan& plan = plan_of(search.rooms[i]);
    Loan loan(plan, demand);
    if (!plan.planned.contains(demand.resources) || !plan.room->has_devices(demand.resources)) {
      if (i == search.first) ++search.first;
      continue;
    }
    if (!worker && served == Served::kNoRoom)
      worker = core_.workers_.pool().idle_for(demand.kind, demand.job, demand.outlives_job);
    if (worker) {
      grant(demand, *worker, plan);
      return Served::kGranted;
    }
    served = Served::kNoWorker;
    most -= ask_for_processes(demand, plan, most);
  }
  return served;
}

NodeCore::Round::Served NodeCore::Round::serve_here(Demand& demand, Plan& plan, NodeSlot last) {
  if (!plan.room->has_devices(demand.resources))
    return Served::kNoRoom;  // enough is free in sum, but on no single device
  Worker* worker = core_.workers_.pool().idle_for(demand.kind, demand.job, demand.outlives_job);
  if (!worker) {
    core_.spread_last_ = last;  // so that it is still this node's turn when the process has started
    // No more processes for tasks can be started in one pass.
    ask_for_processes(
        demand, plan,
        static_cast<int>(std::min<int64_t>(demand.want, core_.settings_.max_workers)));
    return Served::kNoWorker;
  }
  grant(demand, *worker, plan);
  return Served::kGranted;
}

int NodeCore::Round::ask_for_processes(const Demand& demand, Plan& plan, int most) {
  int asked = 0;
  while (asked < most && plan.planned.contains(demand.resources)) {
    core_.workers_.starts().need_for_task(demand.kind);
    if (core_.started_ && !core_.workers_.starts().backs_off(demand.kind, now_))
      plan.planned.subtract_allowing_debt(demand.resources);
    // A demand without resources has no such bound and is limited by the concurrency.
    if (++asked > core_.settings_.worker_start_concurrency && demand.resources.empty()) break;
  }
  return asked;
}

void NodeCore::Round::grant(Demand& demand, Worker& worker, Plan& plan) {
  count_grant(core_.counters_, now_.steady_us - demand.waiting_since_us);
  plan.planned.subtract_allowing_debt(demand.resources);
  worker.gpus = core_.rooms_.change(plan.key).take(demand.resources);
  core_.workers_.pool().set_state(worker, WorkerState::kLeased, now_.steady_us);
  worker.job = demand.job;
  worker.outlives_job = demand.outlives_job;
  worker.held = demand.resources;
  worker.room = plan.key;
  Lease& lease = core_.queue_.add_lease(demand, worker.id, now_.steady_us);
  worker.lease = lease.id;
  demand.infeasible.since_us = -1;
  proto::LeaseGrant message;
  message.set_class_id(demand.class_id);
  message.set_lease_id(lease.id);
  *message.mutable_worker() = core_.address_of(worker);
  message.set_pid(worker.pid);
  for (std::string& name : plan.room->gpus().names(worker.gpus))
    message.add_gpu_ids(std::move(name));
  core_.sink_.grant(demand.owner, message);
}

void NodeCore::Round::fail(Demand& demand, const std::string& message) {
  core_.refuse(demand.owner, demand.class_id, message, Code::kUnschedulable);
  demand.target.unknown_since_us = -1;
  core_.queue_.set_want(demand, 0, now_.steady_us);
}

// ---- other nodes

const scheduling::Nodes& NodeCore::Round::nodes(const Plan& plan) {
  if (core_.view_.self() != kNoNode) core_.view_.set_free_here(plan.planned);
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

bool NodeCore::Round::stays_here(const Demand& demand, const Plan& plan) const {
  if (demand.no_spill || core_.view_.peers().empty()) return true;
  if (demand.strategy != proto::DEFAULT) return false;
  if (!plan.room->gpus().empty() && demand.resources.units("GPU") == 0) return false;
  return scheduling::utilisation(plan.room->resources().total(), plan.planned, demand.resources) <=
         core_.settings_.scheduler_spread_threshold;
}

NodeCore::Round::Served NodeCore::Round::send_to(Demand& demand, NodeSlot node) {
  const NodeId id = core_.view_.nodes().id(node);
  core_.view_.redirected(id, demand.resources, now_.steady_us);
  ++redirects_[{{demand.owner, demand.class_id}, id}];
  core_.queue_.set_want(demand, demand.want - 1, now_.steady_us);
  return Served::kRedirected;
}

void NodeCore::Round::send_redirects() {
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

}  // namespace rt::node
