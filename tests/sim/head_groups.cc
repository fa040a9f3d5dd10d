#include "tests/sim/head_groups.h"

#include <fmt/core.h>

#include <utility>

#include "tests/sim/ledger.h"

namespace rt::sim {

using Phase = head::Actor::Phase;

void check_seats(const head::HeadView& head, const GroupId& group, int bundle,
                 const ActorId& next) {
  ResourceSet taken;
  for (const auto& [id, actor] : head.actors().all()) {
    const bool sits = actor.on_node() && actor.seat.group == group && actor.seat.bundle == bundle;
    if (sits || id == next) taken.add(actor.phase == Phase::kAlive ? actor.held : actor.placement);
  }
  const head::Group* held = head.groups().find(group);
  if (held && !held->bundles.resources(static_cast<size_t>(bundle)).contains(taken))
    violation(fmt::format("the head puts actors into bundle {} of group {} that take {}", bundle,
                          group.hex().substr(0, 8), taken.to_string()));
}

void RemovedGroups::look(const head::HeadView& head, const GroupLedger& groups) {
  std::set<GroupId> removed;
  for (const auto& [id, group] : groups.all()) {
    if (head.groups().is_gone(id) && known_.insert(id).second) removed.insert(id);
  }
  if (!std::exchange(has_looked_, true) || removed.empty()) return;
  for (const auto& [id, actor] : head.actors().all()) {
    // One that is not on the disk yet ends when it is to be placed.
    if (!actor.seat.group || actor.dead() || actor.phase == Phase::kCommitting) continue;
    if (removed.contains(*actor.seat.group))
      violation(fmt::format("actor {} is {} for the head, which has removed its group {}", id.hex(),
                            ActorState_Name(actor.info.state()),
                            actor.seat.group->hex().substr(0, 8)));
  }
}

}  // namespace rt::sim
