#include "daemons/node_manager/core/revocation.h"

#include <algorithm>

namespace rt::node {

void NodeCore::Revocation::run() {
  const int64_t before = now_.steady_us - core_.settings_.lease_revoke_after_ms * 1000;
  Wanted bundles;
  for (const BundleAttempt& attempt : core_.bundle_line_.waiting()) {
    if (attempt.since_us > before) break;
    bundles.sum.add(attempt.sum);
    bundles.parts.insert(bundles.parts.end(), attempt.parts.begin(), attempt.parts.end());
  }
  if (!bundles.parts.empty()) revoke(plan(RoomKey(), bundles));
  for (const ActorId& id : core_.actors_.waiting()) {
    const HostedActor& actor = core_.actors_.at(id);
    if (actor.state == HostedActor::State::kWaitingResources && actor.since_us <= before)
      revoke(plan(actor.room, {actor.placement, {actor.placement}}));
  }
  for (const auto& [key, demand] : core_.queue_.all()) {
    if (demand.want > 0 && demand.waiting_since_us <= before) for_demand(demand);
  }
}

void NodeCore::Revocation::for_demand(const Demand& demand) {
  const Wanted wanted{demand.resources, {demand.resources}, &demand};
  if (demand.room.is_node()) {
    if (core_.may_run_here(demand)) revoke(plan(RoomKey(), wanted));
    return;
  }
  if (core_.drain_ || demand.not_here()) return;
  // The first bundle in which it helps, or, if there is none, the first one as far as possible.
  std::optional<Plan> chosen;
  for (const RoomKey& room : core_.rooms_.bundles().candidates(demand.room, demand.resources,
                                                               demand.target.newest_epoch)) {
    Plan here = plan(room, wanted);
    if (here.suffices || !chosen) chosen = std::move(here);
    if (chosen->suffices) break;
  }
  if (chosen) revoke(*chosen);
}

NodeCore::Revocation::Plan NodeCore::Revocation::plan(const RoomKey& room, const Wanted& wanted) {
  Plan plan;
  Prospect expected(core_.rooms_.at(room));
  for (const auto& [id, lease] : core_.queue_.leases()) {
    const Worker& worker = *core_.workers_.pool().find(lease.worker);
    if (lease.revoked && worker.room == room)
      expected.add(core_.releasable_resources(worker), worker.gpus);
  }
  while (!expected.covers_all(wanted.sum, wanted.parts)) {
    Lease* victim = next_victim(room, wanted, expected, plan.victims);
    if (!victim) return plan;
    plan.victims.push_back(victim);
    const Worker& worker = *core_.workers_.pool().find(victim->worker);
    expected.add(core_.releasable_resources(worker), worker.gpus);
  }
  plan.suffices = true;
  return plan;
}

Lease* NodeCore::Revocation::next_victim(const RoomKey& room, const Wanted& wanted,
                                         const Prospect& expected,
                                         const std::vector<Lease*>& chosen) {
  Lease* victim = nullptr;
  const bool holds_some = wanted.waiter && wanted.waiter->leases > 0;
  int victim_leases = holds_some ? wanted.waiter->leases + 1 : 0;
  // Enough is there in sum, so that the devices lack which are free in one piece.
  const bool lacks_devices = expected.resources().contains(wanted.sum);
  for (auto& [id, lease] : core_.queue_.leases()) {
    if (lease.revoked || std::find(chosen.begin(), chosen.end(), &lease) != chosen.end()) continue;
    const Worker& worker = *core_.workers_.pool().find(lease.worker);
    if (worker.room != room) continue;
    const Demand* holder = core_.queue_.find(lease.owner, lease.class_id);
    if (holder == wanted.waiter || holder->leases <= victim_leases) continue;
    ResourceSet gives = core_.releasable_resources(worker);
    bool helps = lacks_devices && !worker.gpus.empty();
    for (const auto& [name, units] : wanted.sum.all())
      helps |= expected.resources().units(name) < units && gives.units(name) > 0;
    if (!helps) continue;
    victim = &lease;
    victim_leases = holder->leases;
  }
  return victim;
}

void NodeCore::Revocation::revoke(const Plan& plan) {
  for (Lease* lease : plan.victims) {
    lease->revoked = true;
    proto::LeaseRevoke message;
    message.add_lease_ids(lease->id);
    core_.sink_.revoke(lease->owner, message);
  }
}

}  // namespace rt::node
