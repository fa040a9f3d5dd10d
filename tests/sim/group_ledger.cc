#include "tests/sim/group_ledger.h"

#include <fmt/core.h>

#include "tests/sim/ledger.h"

namespace rt::sim {

void GroupLedger::created(const GroupId& id, GroupPlan plan, uint64_t owner) {
  auto [it, added] = groups_.try_emplace(id);
  if (!added) violation(fmt::format("group id {} is used twice", id.hex()));
  it->second.plan = std::move(plan);
  it->second.owner = owner;
}

void GroupLedger::removal_sent(const GroupId& id, uint64_t owner) {
  doom(id);
  groups_.at(id).removed_by.insert(owner);
}

void GroupLedger::removal_confirmed(const GroupId& id) {
  GroupRecord& group = groups_.at(id);
  group.removed = true;
  group.uncertain = false;
}

void GroupLedger::owner_ended(uint64_t owner) {
  for (auto& [id, group] : groups_) {
    group.uncertain |= group.removed_by.erase(owner) > 0 && !group.removed;
    if (group.owner != owner) continue;
    if (!group.plan.detached) {
      group.doomed = true;
      group.uncertain = false;
    } else if (!group.registered) {
      group.uncertain = true;
    }
  }
}

void GroupLedger::committed(const proto::GroupInfo& info) {
  const GroupId id = GroupId::from_binary(info.spec().group_id());
  check_strategy(id, info);
  for (int i = 0; i < info.bundle_nodes_size(); ++i) {
    if (info.bundle_nodes(i).empty()) continue;
    committed_.insert({id, i, NodeId::from_binary(info.bundle_nodes(i)), info.bundle_epochs(i)});
  }
}

void GroupLedger::check_strategy(const GroupId& id, const proto::GroupInfo& info) const {
  std::set<std::string> nodes;
  int placed = 0;
  for (const std::string& node : info.bundle_nodes()) {
    if (node.empty()) continue;
    ++placed;
    nodes.insert(node);
  }
  const auto strategy = info.spec().strategy();
  const auto different = static_cast<int>(nodes.size());
  if ((strategy == proto::GroupSpec::STRICT_SPREAD && different != placed) ||
      (strategy == proto::GroupSpec::STRICT_PACK && different > 1))
    violation(fmt::format("group {} is {} and has {} bundles on {} nodes", id.hex(),
                          GroupSpec_Strategy_Name(strategy), placed, different));
}

void GroupLedger::check_news(const proto::GroupInfo& info) const {
  if (info.state() == proto::GROUP_REMOVED) return;
  const GroupId id = GroupId::from_binary(info.spec().group_id());
  for (int i = 0; i < info.bundle_nodes_size(); ++i) {
    if (info.bundle_nodes(i).empty()) continue;
    const NodeId node = NodeId::from_binary(info.bundle_nodes(i));
    if (!was_committed(id, i, node, info.bundle_epochs(i)))
      violation(
          fmt::format("the head says that bundle {} of group {} is on node {} with epoch {}, "
                      "which is not on its disk",
                      i, id.hex(), node.hex(), info.bundle_epochs(i)));
  }
}

std::string GroupLedger::describe() const {
  std::string out;
  for (const auto& [id, group] : groups_) {
    std::string bundles;
    for (const ResourceSet& bundle : group.plan.bundles) bundles += " " + bundle.to_string();
    out += fmt::format("group {} of owner #{}: {}{}{}{}{}\n", id.hex().substr(0, 8), group.owner,
                       GroupSpec_Strategy_Name(group.plan.strategy), bundles,
                       group.plan.detached ? ", detached" : "", group.doomed ? ", must go" : "",
                       group.removed ? ", removed" : "");
  }
  return out;
}

}  // namespace rt::sim
