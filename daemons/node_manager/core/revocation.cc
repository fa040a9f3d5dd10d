#include "daemons/node_manager/core/revocation.h"

#include <algorithm>

namespace rt::node {

void Leases::Revocation::run() {
  const int64_t before = now_.steady_us - node_.settings.lease_revoke_after_ms * 1000;
  Wanted bundles;
  for (const BundleAttempt& attempt : node_.bundle_line.waiting()) {
    if (attempt.since_us > before) break;
    bundles.sum.add(attempt.sum);
    bundles.parts.insert(bundles.parts.end(), attempt.parts.begin(), attempt.parts.end());
  }
  if (!bundles.parts.empty()) revoke(plan(RoomKey(), bundles));
  for (const ActorId& id : node_.actors.waiting()) {
    const HostedActor& actor = node_.actors.at(id);
    if (actor.state == HostedActor::State::kWaitingResources && actor.since_us <= before)
      revoke(plan(actor.room, {actor.placement, {actor.placement}}));
  }
  for (const auto& [key, demand] : leases_.queue_.all()) {
    if (demand.want > 0 && demand.waiting_since_us <= before) for_demand(demand);
  }
}

void Leases::Revocation::for_demand(const Demand& demand) {
  const Wanted wanted{demand.resources, {demand.resources}, &demand};
  if (demand.room.is_node()) {
    if (leases_.may_run_here(demand)) revoke(plan(RoomKey(), wanted));
    return;
  }
  if (leases_.leaving_ || demand.not_here()) return;
  // The first bundle in which it helps, or, if there is none, the first one as far as possible.
  std::optional<Plan> chosen;
  for (const RoomKey& room : node_.rooms.bundles().candidates(demand.room, demand.resources,
                                                              demand.target.newest_epoch)) {
    Plan here = plan(room, wanted);
    if (here.suffices || !chosen) chosen = std::move(here);
    if (chosen->suffices) break;
  }
  if (chosen) revoke(*chosen);
}

Leases::Revocation::Plan Leases::Revocation::plan(const RoomKey& room, const Wanted& wanted) {
  Plan plan;
  Prospect expected(node_.rooms.at(room));
  for (const auto& [id, lease] : leases_.queue_.leases()) {
    const Worker& worker = *node_.workers.pool().find(lease.worker);
    if (lease.revoked && worker.room == room)
      expected.add(releasable_resources(worker), worker.gpus);
  }
  while (!expected.covers_all(wanted.sum, wanted.parts)) {
    Lease* victim = next_victim(room, wanted, expected, plan.victims);
    if (!victim) return plan;
    plan.victims.push_back(victim);
    const Worker& worker = *node_.workers.pool().find(victim->worker);
    expected.add(releasable_resources(worker), worker.gpus);
  }
  plan.suffices = true;
  return plan;
}

Lease* Leases::Revocation::next_victim(const RoomKey& room, const Wanted& wanted,
                                       const Prospect& expected,
                                       const std::vector<Lease*>& chosen) {
  Lease* victim = nullptr;
  const bool holds_some = wanted.waiter && wanted.waiter->leases > 0;
  int victim_leases = holds_some ? wanted.waiter->leases + 1 : 0;
  // Enough is there in sum, so that the devices lack which are free in one piece.
  const bool lacks_devices = expected.resources().contains(wanted.sum);
  for (auto& [id, lease] : leases_.queue_.leases()) {
    if (lease.revoked || std::find(chosen.begin(), chosen.end(), &lease) != chosen.end()) continue;
    const Worker& worker = *node_.workers.pool().find(lease.worker);
    if (worker.room != room) continue;
    const Demand* holder = leases_.queue_.find(lease.owner, lease.class_id);
    if (holder == wanted.waiter || holder->leases <= victim_leases) continue;
    ResourceSet gives = releasable_resources(worker);
    bool helps = lacks_devices && !worker.gpus.empty();
    for (const auto& [name, units] : wanted.sum.all())
      helps |= expected.resources().units(name) < units && gives.units(name) > 0;
    if (!helps) continue;
    victim = &lease;
    victim_leases = holder->leases;
  }
  return victim;
}

void Leases::Revocation::revoke(const Plan& plan) {
  for (Lease* lease : plan.victims) {
    lease->revoked = true;
    proto::LeaseRevoke message;
    message.add_lease_ids(lease->id);
    node_.sink.revoke(lease->owner, message);
  }
}

}  // namespace rt::node
