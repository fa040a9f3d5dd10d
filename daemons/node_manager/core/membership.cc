#include "daemons/node_manager/core/membership.h"

#include <fmt/core.h>

#include <set>

#include "common/base/bytes.h"

namespace rt::node {
namespace {

// Tells drivers that a node has a problem, works again, or is dead.
std::string health_line(const proto::Node& node) {
  const std::string name =
      fmt::format("Node {} ({})", to_hex(node.node_id()).substr(0, 8), node.ip());
  if (!node.alive()) return fmt::format("{} is dead: {}", name, node.death_message());
  return node.problem().empty()
             ? fmt::format("{} works again.", name)
             : fmt::format("{} does not work as it should: {}.", name, node.problem());
}

}  // namespace

Membership::Membership(const NodeId& me) : me_(me) {}

Membership::~Membership() = default;

Membership::Turn Membership::changed(const NodeList& nodes) {
  Turn turn;
  for (const proto::Node& node : nodes) {
    const NodeId id = NodeId::from_binary(node.node_id());
    const bool is_me = id == me_;
    if (is_me && !node.alive()) {
      turn = {};
      turn.dead = node.death_message();
      return turn;
    }
    const auto before = nodes_.find(id);
    const bool known = before != nodes_.end();
    const bool had_problem = known && !before->second.problem().empty();
    if (!is_me && had_problem == node.problem().empty()) turn.lines.push_back(health_line(node));
    const bool drain_changed =
        known && before->second.drain().SerializeAsString() != node.drain().SerializeAsString();
    if (known != node.alive() || drain_changed) *turn.news.add_nodes() = node;
    if (node.alive()) {
      nodes_[id] = node;
    } else {
      nodes_.erase(id);
    }
  }
  return turn;
}

Membership::NodeList Membership::since_registration(const NodeList& known_to_head) const {
  std::set<NodeId> present;
  for (const proto::Node& node : known_to_head) present.insert(NodeId::from_binary(node.node_id()));
  NodeList changes = known_to_head;
  for (const auto& [id, node] : nodes_) {
    if (present.contains(id) || id == me_) continue;
    *changes.Add() = node;
    changes.rbegin()->set_alive(false);
  }
  return changes;
}

std::vector<std::string> Membership::problems() const {
  std::vector<std::string> lines;
  for (const auto& [id, node] : nodes_) {
    if (!node.problem().empty() && id != me_) lines.push_back(health_line(node));
  }
  return lines;
}

}  // namespace rt::node
