#include "daemons/head/core/bundle_seats.h"

namespace rt::head {

int BundleSeats::choose(const Group& group, int wanted, const ResourceSet& amount,
                        const Cluster& cluster, Now now) const {
  const int first = wanted < 0 ? 0 : wanted;
  const int end = wanted < 0 ? static_cast<int>(group.bundles.size()) : wanted + 1;
  for (int bundle = first; bundle < end; ++bundle) {
    const NodeId id = group.node_of(bundle);
    const NodeState* node = id.is_nil() ? nullptr : cluster.find(id);
    if (!node || !node->takes_work()) continue;
    ResourceSet room = group.bundles.resources(static_cast<size_t>(bundle));
    if (auto at = bundles_.find({group.id, bundle}); at != bundles_.end()) {
      if (now.steady_us < at->second.refused_until_us) continue;
      room.subtract_allowing_debt(at->second.used);
    }
    if (room.contains(amount)) return bundle;
  }
  return -1;
}

void BundleSeats::take(const GroupId& group, int bundle, const ActorId& actor,
                       const ResourceSet& amount) {
  leave(group, bundle, actor);
  Bundle& seats = bundles_[{group, bundle}];
  seats.actors[actor] = amount;
  seats.used.add(amount);
}

void BundleSeats::leave(const GroupId& group, int bundle, const ActorId& actor) {
  auto at = bundles_.find({group, bundle});
  if (at == bundles_.end()) return;
  auto seat = at->second.actors.find(actor);
  if (seat == at->second.actors.end()) return;
  at->second.used.subtract(seat->second);
  at->second.actors.erase(seat);
  if (at->second.actors.empty() && at->second.refused_until_us == 0) bundles_.erase(at);
}

void BundleSeats::refuse(const GroupId& group, int bundle, int64_t until_us) {
  bundles_[{group, bundle}].refused_until_us = until_us;
}

void BundleSeats::forget(const GroupId& group) {
  auto at = bundles_.lower_bound({group, -1});
  while (at != bundles_.end() && at->first.first == group) at = bundles_.erase(at);
}

ResourceSet BundleSeats::used(const GroupId& group, int bundle) const {
  auto at = bundles_.find({group, bundle});
  return at == bundles_.end() ? ResourceSet() : at->second.used;
}

}  // namespace rt::head
