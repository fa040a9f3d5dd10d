#include "common/scheduling/nodes.h"

#include <algorithm>
#include <array>

namespace rt::scheduling {
namespace {

void insert(std::vector<NodeSlot>& sorted, NodeSlot slot) {
  sorted.insert(std::lower_bound(sorted.begin(), sorted.end(), slot), slot);
}
void erase(std::vector<NodeSlot>& sorted, NodeSlot slot) {
  auto at = std::lower_bound(sorted.begin(), sorted.end(), slot);
  if (at != sorted.end() && *at == slot) sorted.erase(at);
}
void add_to(NodeMask& mask, const std::vector<NodeSlot>& slots) {
  for (NodeSlot slot : slots) mask.add(slot);
}

// A node may run out of these even when little of it is requested.
const std::array<std::string, 2>& always_counted() {
  static const std::array<std::string, 2> names{"CPU", "memory"};
  return names;
}

bool same(const Labels& a, const Labels& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& label) {
           auto there = b.find(label.first);
           return there != b.end() && there->second == label.second;
         });
}

}  // namespace

double utilisation(const ResourceSet& total, const ResourceSet& free, const ResourceSet& request) {
  double worst = 0;
  auto look_at = [&](const std::string& name, int64_t wanted) {
    const int64_t all = total.units(name);
    if (all <= 0) return;
    worst = std::max(
        worst, static_cast<double>(all - free.units(name) + wanted) / static_cast<double>(all));
  };
  for (const auto& [name, wanted] : request.all()) look_at(name, wanted);
  for (const std::string& name : always_counted()) look_at(name, request.units(name));
  return worst;
}

float Nodes::Share::load() const {
  return static_cast<float>(std::max(total - free, placed)) * per_unit;
}

int64_t Nodes::Share::amount(Amount which) const {
  switch (which) {
    case Amount::kTotal: return total;
    case Amount::kFree: return free;
    case Amount::kBesideActors: return total - held;
  }
  return 0;
}

Nodes::Share* Nodes::find_in(Column& column, NodeSlot node) {
  // Most nodes have the common resources, where the place in the column is the slot.
  const auto slot = static_cast<size_t>(node);
  if (slot < column.size() && column[slot].node == node) return &column[slot];
  auto at =
      std::lower_bound(column.begin(), column.end(), node,
                       [](const Share& share, NodeSlot wanted) { return share.node < wanted; });
  return at != column.end() && at->node == node ? &*at : nullptr;
}

const Nodes::Column* Nodes::column(const std::string& resource) const {
  auto at = columns_.find(resource);
  return at == columns_.end() ? nullptr : &at->second;
}

NodeSlot Nodes::find(const NodeId& id) const {
  auto at = by_id_.find(id);
  return at == by_id_.end() ? kNoNode : at->second;
}

NodeSlot Nodes::put(const NodeId& id, const Labels& labels, const ResourceSet& total) {
  NodeSlot slot = find(id);
  if (slot != kNoNode) {
    Node& node = nodes_[static_cast<size_t>(slot)];
    if (node.total == total && same(node.labels, labels)) return slot;
    unindex(slot);
  } else if (!unused_.empty()) {
    slot = unused_.back();
    unused_.pop_back();
  } else {
    slot = static_cast<NodeSlot>(nodes_.size());
    nodes_.emplace_back();
  }
  Node& node = nodes_[static_cast<size_t>(slot)];
  node.id = id;
  node.labels = labels;
  node.total = total;
  if (!node.used) open_.add(slot);
  node.used = true;
  by_id_[id] = slot;
  all_.add(slot);
  index(slot);
  return slot;
}

void Nodes::remove(const NodeId& id) {
  const NodeSlot slot = find(id);
  if (slot == kNoNode) return;
  unindex(slot);
  nodes_[static_cast<size_t>(slot)] = {};
  all_.remove(slot);
  open_.remove(slot);
  by_id_.erase(id);
  unused_.push_back(slot);
}

void Nodes::index(NodeSlot slot) {
  const Node& node = nodes_[static_cast<size_t>(slot)];
  for (const auto& [name, total] : node.total.all()) {
    Column& column = columns_[name];
    auto at = std::lower_bound(column.begin(), column.end(), slot,
                               [](const Share& share, NodeSlot it) { return share.node < it; });
    column.insert(at, {slot, 1.0F / static_cast<float>(total), total, total, 0, 0});
  }
  for (const auto& [key, value] : node.labels) {
    LabelKey& label = labels_[key];
    insert(label.nodes, slot);
    insert(label.by_value[value], slot);
  }
}

void Nodes::unindex(NodeSlot slot) {
  const Node& node = nodes_[static_cast<size_t>(slot)];
  for (const auto& [name, total] : node.total.all()) {
    auto at = columns_.find(name);
    std::erase_if(at->second, [&](const Share& share) { return share.node == slot; });
    if (at->second.empty()) columns_.erase(at);
  }
  for (const auto& [key, value] : node.labels) {
    auto label = labels_.find(key);
    erase(label->second.nodes, slot);
    auto at = label->second.by_value.find(value);
    erase(at->second, slot);
    if (at->second.empty()) label->second.by_value.erase(at);
    if (label->second.nodes.empty()) labels_.erase(label);
  }
}

void Nodes::set_free(NodeSlot node, const ResourceSet& free) {
  for (const auto& [name, total] : nodes_[static_cast<size_t>(node)].total.all())
    find_in(columns_.at(name), node)->free = free.units(name);
}

void Nodes::set_actors(NodeSlot node, const ResourceSet& held, const ResourceSet& placed,
                       int actors) {
  Node& known = nodes_[static_cast<size_t>(node)];
  known.actors = actors;
  for (const auto& [name, total] : known.total.all()) {
    Share& share = *find_in(columns_.at(name), node);
    share.held = held.units(name);
    share.placed = placed.units(name);
  }
}

void Nodes::set_open(NodeSlot node, bool open) {
  if (open) {
    open_.add(node);
  } else {
    open_.remove(node);
  }
}

NodeMask Nodes::having(const ResourceSet& request, Amount amount) const {
  NodeMask found = all_;
  for (const auto& [name, wanted] : request.all()) {
    const Column* column = this->column(name);
    NodeMask enough(slots());
    if (column) {
      for (const Share& share : *column) {
        if (share.amount(amount) >= wanted) enough.add(share.node);
      }
    }
    found &= enough;
  }
  return found;
}

NodeMask Nodes::matching(const proto::LabelSelector& selector) const {
  NodeMask found = all_;
  for (const proto::LabelRule& rule : selector.rules()) {
    auto label = labels_.find(rule.key());
    NodeMask named(slots());
    const bool by_value =
        rule.op() == proto::LabelRule::IN || rule.op() == proto::LabelRule::NOT_IN;
    if (label != labels_.end() && !by_value) add_to(named, label->second.nodes);
    if (label != labels_.end() && by_value) {
      for (const std::string& value : rule.values()) {
        auto at = label->second.by_value.find(value);
        if (at != label->second.by_value.end()) add_to(named, at->second);
      }
    }
    switch (rule.op()) {
      case proto::LabelRule::IN:
      case proto::LabelRule::EXISTS: found &= named; break;
      case proto::LabelRule::NOT_IN:
      case proto::LabelRule::DOES_NOT_EXIST: found -= named; break;
      // An operator of a later release: no node is known to satisfy it.
      default: return NodeMask(slots());
    }
  }
  return found;
}

NodeMask Nodes::with_any(const std::string& resource) const {
  NodeMask found(slots());
  if (const Column* column = this->column(resource)) {
    for (const Share& share : *column) found.add(share.node);
  }
  return found;
}

std::vector<int64_t> Nodes::amounts(const std::string& resource, Amount amount) const {
  std::vector<int64_t> found(slots(), 0);
  if (const Column* column = this->column(resource)) {
    for (const Share& share : *column)
      found[static_cast<size_t>(share.node)] = share.amount(amount);
  }
  return found;
}

std::vector<std::pair<std::string, NodeMask>> Nodes::by_value(const std::string& label) const {
  std::vector<std::pair<std::string, NodeMask>> found;
  auto at = labels_.find(label);
  if (at == labels_.end()) return found;
  for (const auto& [value, slots_of_value] : at->second.by_value) {
    NodeMask nodes(slots());
    add_to(nodes, slots_of_value);
    found.emplace_back(value, std::move(nodes));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return found;
}

std::vector<float> Nodes::utilisations(const ResourceSet& request) const {
  std::vector<float> worst(slots(), 0.0F);
  auto look_at = [&](const std::string& name, int64_t wanted) {
    const Column* column = this->column(name);
    if (!column) return;
    for (const Share& share : *column) {
      float& known = worst[static_cast<size_t>(share.node)];
      known = std::max(known, share.load() + static_cast<float>(wanted) * share.per_unit);
    }
  };
  for (const auto& [name, wanted] : request.all()) look_at(name, wanted);
  for (const std::string& name : always_counted()) {
    if (request.units(name) == 0) look_at(name, 0);
  }
  return worst;
}

}  // namespace rt::scheduling
