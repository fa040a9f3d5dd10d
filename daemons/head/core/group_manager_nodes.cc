// Nodes that register and say which bundles they hold, and nodes that are lost. See
// group_manager.h.
#include <fmt/core.h>

#include <algorithm>

#include "daemons/head/core/group_manager.h"
#include "daemons/head/core/group_messages.h"

namespace rt::head {

void GroupManager::lose_bundles(Group& group, const std::set<int>& lost, const std::string& why,
                                Now now) {
  // The places of the other bundles depend on those that stay, so an attempt under way begins anew.
  if (group.attempt) cancel_attempt(group, "more of its bundles were lost", now);
  std::map<NodeId, std::vector<int>> by_node;
  std::vector<NodeId> nodes;
  for (int i = 0; i < static_cast<int>(group.bundles.size()); ++i) {
    nodes.push_back(group.node_of(i));
    if (!lost.contains(i) || nodes.back().is_nil()) continue;
    by_node[nodes.back()].push_back(i);
    nodes.back() = NodeId::nil();
  }
  for (const auto& [id, indexes] : by_node) {
    NodeState& node = *env_.cluster.find(id);
    env_.cluster.remove_bundles(node, group.sum_of(indexes));
    for (int index : indexes)
      env_.cluster.cancel_reservation(node, BundleClaim{group.id, group.info.bundle_epochs(index)});
  }
  env_.timers.cancel(group.timer);
  directory_.set_nodes(group, nodes,
                       {group.info.bundle_epochs().begin(), group.info.bundle_epochs().end()});
  directory_.move(group, Phase::kWaiting);
  group.info.set_lost_ms(now.wall_us / 1000);
  group.info.set_lost_why(fmt::format("{} {}: {}", lost.size() == 1 ? "bundle" : "bundles",
                                      fmt::join(lost, ", "), why));
  persist(group);
  env_.subscriptions.publish_group(group.id, group.info);
  if (settled_) {
    queue(group, now);
  } else {
    group.recovered = true;
  }
}

void GroupManager::node_registered(
    NodeState& node, const google::protobuf::RepeatedPtrField<proto::HeldBundle>& held, Now now) {
  std::map<std::pair<GroupId, int64_t>, std::vector<int>> stray;
  std::map<GroupId, std::map<int, int64_t>> here;
  for (const proto::HeldBundle& bundle : held) {
    if (!GroupId::is_valid(bundle.group_id())) continue;
    const GroupId id = GroupId::from_binary(bundle.group_id());
    const Group* group = directory_.find(id);
    const int index = bundle.index();
    const bool placed = group && group->node_of(index) == node.id &&
                        group->info.bundle_epochs(index) == bundle.epoch();
    const bool asked = group && group->attempt && group->attempt->epoch == bundle.epoch() &&
                       group->attempt->has(node.id, index);
    if (placed || asked) {
      here[id][index] = bundle.epoch();
    } else {
      stray[{id, bundle.epoch()}].push_back(index);
    }
  }
  for (const auto& [claim, indexes] : stray) {
    const Group* group = directory_.find(claim.first);
    proto::ExitInfo why;
    if (!group || group->removed()) why.set_kind(proto::ExitInfo::GROUP_REMOVED);
    why.set_message(fmt::format("placement group {} {}", claim.first.hex(),
                                !group || group->removed()
                                    ? "was removed, or was not complete when the head restarted"
                                    : "has this bundle on another node"));
    give_back(env_.sink, env_.cluster, node.id, {claim.first, claim.second, indexes}, why);
  }
  for (Group* group : directory_.on_node(node.id)) {
    const std::map<int, int64_t>& has = here[group->id];
    std::set<int> lost;
    for (int i = 0; i < group->info.bundle_nodes_size(); ++i) {
      if (group->node_of(i) == node.id && !has.contains(i)) lost.insert(i);
    }
    if (!lost.empty()) {
      lose_bundles(*group, lost, fmt::format("node {} does not hold them any more", node.info.ip()),
                   now);
      continue;
    }
    if (!group->attempt) continue;
    auto part = group->attempt->parts.find(node.id);
    if (part == group->attempt->parts.end()) continue;
    const std::vector<int>& indexes = part->second.indexes;
    const bool complete =
        std::all_of(indexes.begin(), indexes.end(), [&](int index) { return has.contains(index); });
    const BundleClaim claim{group->id, group->attempt->epoch};
    if (!complete && group->phase == Phase::kRecording) {
      cancel_attempt(*group, fmt::format("node {} has given up its bundles", node.info.ip()), now);
      retry_later(*group, now);
    } else if (!complete) {
      // The request may have been lost with the connection. A node that did get it answers again.
      part->second.held = false;
      env_.cluster.reserve(node, claim, part->second.amount);
      send_prepare(env_.sink, *group, node);
    } else {
      // The amounts that the node registered as available do not include them any more.
      env_.cluster.cancel_reservation(node, claim);
      if (!std::exchange(part->second.held, true) && group->attempt->all_held())
        write_record(*group, now);
    }
  }
  placement_wanted_ = true;
}

int GroupManager::node_lost(NodeState& node, Now now) {
  int losers = 0;
  const std::string why = fmt::format("node {} is dead", node.info.ip());
  for (Group* group : directory_.on_node(node.id)) {
    std::set<int> lost;
    for (int i = 0; i < group->info.bundle_nodes_size(); ++i) {
      if (group->node_of(i) == node.id) lost.insert(i);
    }
    const bool asked = group->attempt && group->attempt->parts.contains(node.id);
    if (asked) cancel_attempt(*group, why, now);
    if (!lost.empty()) {
      ++losers;
      lose_bundles(*group, lost, why, now);
    } else if (asked) {
      queue(*group, now);
    }
  }
  std::vector<Group*> orphans;
  for (const auto& [id, group] : directory_.all()) {
    if (!group.removed() && group.ends_with_owner() &&
        group.info.spec().owner().node_id() == node.id.view())
      orphans.push_back(directory_.find(id));
  }
  for (Group* group : orphans)
    end(*group, fmt::format("the node ({}) of the process that created it died", node.info.ip()),
        now);
  placement_wanted_ = true;
  return losers;
}

}  // namespace rt::head
