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

class Leases::Round::Loan {
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

void Leases::Round::run() {
  std::vector<Demand*> order = leases_.queue_.fair_order(now_.steady_us - starved_after_us());
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
  for (auto& [key, demand] : leases_.queue_.all()) {
    if (demand.want == 0 && demand.leases == 0) done.push_back(&demand);
  }
  for (Demand* demand : done) leases_.queue_.erase_if_unused(*demand);
}

int64_t Leases::Round::starved_after_us() const {
  return node_.settings.lease_revoke_after_ms * 1000 * kStarvedAfterRevokes;
}

// ---- what is left to give

Leases::Round::Plan& Leases::Round::plan_of(const RoomKey& key) {
  if (auto known = plans_.find(key); known != plans_.end()) return known->second;
  const Room& room = node_.rooms.at(key);
  Plan plan{key, &room, leases_.leaving_ ? ResourceSet() : room.resources().available()};
  if (key.is_node()) plan.planned.subtract_allowing_debt(node_.bundle_line.aside());
  return plans_.emplace(key, std::move(plan)).first->second;
}

Leases::Round::Search& Leases::Round::search_of(const Demand& demand) {
  auto [it, is_new] = searches_.try_emplace({demand.owner, demand.class_id});
  if (is_new && !leases_.leaving_)
    it->second.rooms =
        node_.rooms.bundles().candidates(demand.room, demand.resources, demand.target.newest_epoch);
  return it->second;
}

void Leases::Round::look_ahead(Plan& plan) {
  plan.prospect.emplace(*plan.room);
  plan.without_parents = plan.prospect;
  std::set<WorkerId> askers;
  for (const auto& [key, demand] : leases_.queue_.all()) {
    if (demand.want > 0 && !demand.process.is_nil()) askers.insert(demand.process);
  }
  for (const auto& [id, worker] : node_.workers.pool().all()) {
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
  for (const auto& [id, actor] : node_.actors.all()) {
    const Worker* worker = actor.state == HostedActor::State::kStarting
                               ? node_.workers.pool().find(actor.worker)
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

bool Leases::Round::set_aside(Plan& plan, const ResourceSet& request) {
  if (!plan.prospect) look_ahead(plan);
  if (!plan.prospect->covers(request)) return false;
  plan.planned.subtract_allowing_debt(request);
  if (!plan.without_parents->covers(request)) plan.left_to_children.add(request);
  return true;
}

void Leases::Round::keep_waiting(Demand& demand) {
  if (demand.room.is_node() && !leases_.may_run_here(demand)) return;
  if (!demand.room.is_node() && demand.not_here()) return;
  const std::vector<RoomKey> rooms =
      demand.room.is_node() ? std::vector{RoomKey()} : search_of(demand).rooms;
  for (const RoomKey& key : rooms) {
    if (node_.rooms.at(key).fits(demand.resources)) demand.lacks = Demand::Lacks::kTurn;
  }
  // Smaller demands behind a starved one must not take what it needs.
  if (!may_set_aside(now_.steady_us - demand.waiting_since_us, starved_after_us())) return;
  for (const RoomKey& key : rooms) {
    if (set_aside(plan_of(key), demand.resources)) return;
  }
}

// ---- one lease

Leases::Round::Served Leases::Round::serve(Demand& demand) {
  if (!demand.room.is_node()) return serve_in_group(demand);
  Plan& plan = plan_of(RoomKey());
  Loan loan(plan, demand);
  return demand.constraint ? serve_constrained(demand, plan) : serve_unconstrained(demand, plan);
}

Leases::Round::Served Leases::Round::serve_unconstrained(Demand& demand, Plan& plan) {
  const NodeSlot last = leases_.turns_last_;
  const bool fits = !leases_.leaving_ && plan.planned.contains(demand.resources);
  if (fits && stays_here(demand, plan)) return serve_here(demand, plan, last);
  if ((demand.no_spill && !leases_.leaving_) || node_.view.peers().empty() ||
      (!fits && now_.steady_us < demand.target.next_redirect_us))
    return Served::kNoRoom;
  const scheduling::Nodes& nodes = this->nodes(plan);
  NodeSlot node = choose(demand, nodes.open() & nodes.having(demand.resources, Amount::kFree));
  if (node == kNoNode) {
    node = where_to_wait(demand, plan, nodes.open());
    demand.target.next_redirect_us =
        now_.steady_us + (node == kNoNode ? kRedirectRetryUs : kFeasibleElsewhereRetryUs);
  }
  if (node == kNoNode) return Served::kNoRoom;
  return node == node_.view.self() ? serve_here(demand, plan, last) : send_to(demand, node);
}

Leases::Round::Served Leases::Round::serve_constrained(Demand& demand, Plan& plan) {
  using Verdict = scheduling::AllowedNodes::Verdict;
  const NodeSlot last = leases_.turns_last_;
  const scheduling::Nodes& nodes = this->nodes(plan);
  const scheduling::AllowedNodes allowed =
      scheduling::allowed_nodes(*demand.constraint, demand.resources, nodes);
  demand.target.excludes_this_node = !allowed.nodes.contains(node_.view.self());
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
  if (node == kNoNode && now_.steady_us >= demand.target.next_redirect_us) {
    node = where_to_wait(demand, plan, allowed.nodes, allowed.preferred);
    if (node != kNoNode)
      demand.target.next_redirect_us = now_.steady_us + kFeasibleElsewhereRetryUs;
  }
  if (node == kNoNode) return Served::kNoRoom;
  return node == node_.view.self() ? serve_here(demand, plan, last) : send_to(demand, node);
}

// Nodes serve who waits with the leases of others, but not with what actors and groups hold.
// A demand that this node can never serve waits at another one, and so does a starved one that only
// the end of an actor or a group can serve here. Its owner asks this node again if it waits there
// in vain.
NodeSlot Leases::Round::where_to_wait(const Demand& demand, Plan& plan, const NodeMask& among,
                                      const NodeMask& preferred) {
  const scheduling::Nodes& nodes = node_.view.nodes();
  const bool may_run_here = leases_.may_run_here(demand);
  if (may_run_here) {
    const int64_t waited_us = now_.steady_us - demand.waiting_since_us;
    if (demand.no_spill || waited_us < starved_after_us()) return kNoNode;
    if (!plan.prospect) look_ahead(plan);
    if (plan.prospect->covers(demand.resources)) return kNoNode;
  }
  NodeMask others = among & nodes.open() & nodes.having(demand.resources, Amount::kBesideActors);
  if (node_.view.self() != kNoNode) others.remove(node_.view.self());
  if (others.empty() && !may_run_here)
    others = among & nodes.having(demand.resources, Amount::kTotal);
  return choose(demand, std::move(others), preferred);
}

// The group has chosen the node already, so that a constraint which excludes it leaves nothing to
// do but to wait.
Leases::Round::Served Leases::Round::serve_in_group(Demand& demand) {
  demand.target.excludes_this_node =
      demand.constraint && !scheduling::where_of(demand.constraint.get()).empty() &&
      !scheduling::allowed_nodes(*demand.constraint, {}, node_.view.nodes())
           .nodes.contains(node_.view.self());
  if (demand.not_here()) return Served::kNoRoom;
  Search& search = search_of(demand);
  Worker* worker = nullptr;
  // No more processes for tasks can be started in one pass.
  int most = static_cast<int>(std::min<int64_t>(demand.want, node_.settings.max_workers));
  Served served = Served::kNoRoom;
  for (size_t i = search.first; i < search.rooms.size() && most > 0; ++i) {
    Plan& plan = plan_of(search.rooms[i]);
    Loan loan(plan, demand);
    if (!plan.planned.contains(demand.resources) || !plan.room->has_devices(demand.resources)) {
      if (i == search.first) ++search.first;
      continue;
    }
    if (!worker && served == Served::kNoRoom)
      worker = node_.workers.pool().idle_for(demand.kind, demand.job, demand.outlives_job);
    if (worker) {
      grant(demand, *worker, plan);
      return Served::kGranted;
    }
    served = Served::kNoWorker;
    most -= ask_for_processes(demand, plan, most);
  }
  return served;
}

Leases::Round::Served Leases::Round::serve_here(Demand& demand, Plan& plan, NodeSlot last) {
  if (!plan.room->has_devices(demand.resources))
    return Served::kNoRoom;  // enough is free in sum, but on no single device
  Worker* worker = node_.workers.pool().idle_for(demand.kind, demand.job, demand.outlives_job);
  if (!worker) {
    leases_.turns_last_ =
        last;  // so that it is still this node's turn when the process has started
    // No more processes for tasks can be started in one pass.
    ask_for_processes(demand, plan,
                      static_cast<int>(std::min<int64_t>(demand.want, node_.settings.max_workers)));
    return Served::kNoWorker;
  }
  grant(demand, *worker, plan);
  return Served::kGranted;
}

int Leases::Round::ask_for_processes(const Demand& demand, Plan& plan, int most) {
  int asked = 0;
  while (asked < most && plan.planned.contains(demand.resources)) {
    node_.workers.starts().need_for_task(demand.kind);
    if (may_start_ && !node_.workers.starts().backs_off(demand.kind, now_))
      plan.planned.subtract_allowing_debt(demand.resources);
    // A demand without resources has no such bound and is limited by the concurrency.
    if (++asked > node_.settings.worker_start_concurrency && demand.resources.empty()) break;
  }
  return asked;
}

void Leases::Round::grant(Demand& demand, Worker& worker, Plan& plan) {
  count_grant(node_.counters, now_.steady_us - demand.waiting_since_us);
  plan.planned.subtract_allowing_debt(demand.resources);
  worker.gpus = node_.rooms.change(plan.key).take(demand.resources);
  node_.workers.pool().set_state(worker, WorkerState::kLeased, now_);
  worker.job = demand.job;
  worker.outlives_job = demand.outlives_job;
  worker.held = demand.resources;
  worker.room = plan.key;
  Lease& lease = leases_.queue_.add_lease(demand, worker.id, now_);
  worker.lease = lease.id;
  demand.infeasible.since_us = -1;
  proto::LeaseGrant message;
  message.set_class_id(demand.class_id);
  message.set_lease_id(lease.id);
  *message.mutable_worker() = node_.workers.address_of(worker);
  message.set_pid(worker.pid);
  for (std::string& name : plan.room->gpus().names(worker.gpus))
    message.add_gpu_ids(std::move(name));
  node_.sink.grant(demand.owner, message);
}

void Leases::Round::fail(Demand& demand, const std::string& message) {
  leases_.refuse(demand.owner, demand.class_id, message, Code::kUnschedulable);
  demand.target.unknown_since_us = -1;
  leases_.queue_.set_want(demand, 0, now_);
}

// ---- other nodes

const scheduling::Nodes& Leases::Round::nodes(const Plan& plan) {
  if (node_.view.self() != kNoNode) node_.view.set_free_here(plan.planned);
  return node_.view.nodes();
}

NodeSlot Leases::Round::choose(const Demand& demand, NodeMask among, const NodeMask& preferred) {
  const NodeSlot node =
      scheduling::choose(node_.view.nodes(),
                         {.resources = demand.resources,
                          .strategy = demand.strategy,
                          .spread_threshold = node_.settings.scheduler_spread_threshold,
                          .near = node_.view.self(),
                          .last = leases_.turns_last_},
                         std::move(among), preferred);
  if (node != kNoNode && scheduling::policy_of(demand.strategy).takes_turns)
    leases_.turns_last_ = node;
  return node;
}

bool Leases::Round::stays_here(const Demand& demand, const Plan& plan) const {
  if (demand.no_spill || node_.view.peers().empty()) return true;
  if (demand.strategy != proto::DEFAULT) return false;
  if (!plan.room->gpus().empty() && demand.resources.units("GPU") == 0) return false;
  return scheduling::utilisation(plan.room->resources().total(), plan.planned, demand.resources) <=
         node_.settings.scheduler_spread_threshold;
}

Leases::Round::Served Leases::Round::send_to(Demand& demand, NodeSlot node) {
  const NodeId id = node_.view.nodes().id(node);
  node_.view.redirected(id, demand.resources, now_);
  ++redirects_[{{demand.owner, demand.class_id}, id}];
  leases_.queue_.set_want(demand, demand.want - 1, now_);
  return Served::kRedirected;
}

void Leases::Round::send_redirects() {
  for (const auto& [where, count] : redirects_) {
    const auto& [key, node] = where;
    auto peer = node_.view.peers().find(node);
    RT_CHECK(peer != node_.view.peers().end());
    proto::LeaseRedirect message;
    message.set_class_id(key.second);
    *message.mutable_node() = peer->second.node;
    message.set_count(count);
    message.set_answer(
        leases_.queue_.number_redirect(*leases_.queue_.find(key.first, key.second), count));
    node_.sink.redirect(key.first, message);
  }
}

}  // namespace rt::node
