#include "daemons/node_manager/core/cluster_view.h"

#include <fmt/core.h>

namespace rt::node {
namespace {
constexpr int64_t kRedirectMemoryUs = 500'000;  // how long a redirect counts as taken
}

ClusterView::ClusterView(NodeId self, const scheduling::Labels& labels, const ResourceSet& total)
    : self_(self), self_slot_(nodes_.put(self, labels, total)) {}

ClusterView::~ClusterView() = default;

void ClusterView::update(const proto::Node& node) {
  if (!NodeId::is_valid(node.node_id())) return;
  NodeId id = NodeId::from_binary(node.node_id());
  if (id == self_) return;
  if (!node.alive()) {
    peers_.erase(id);
    nodes_.remove(id);
    return;
  }
  Peer& peer = peers_[id];
  if (!peer.node.node_id().empty() && node.incarnation() < peer.node.incarnation()) return;
  peer.node = node;
  peer.total = ResourceSet::from_proto(node.total());
  peer.reported = ResourceSet::from_proto(node.available());
  peer.slot = nodes_.put(id, node.labels(), peer.total);
  nodes_.set_open(peer.slot, !node.has_drain());
  const ResourceSet held = ResourceSet::from_proto(node.held());
  nodes_.set_actors(peer.slot, held, held, 0);
  recompute(id);
}

void ClusterView::leave() {
  nodes_.remove(self_);
  self_slot_ = scheduling::kNoNode;
}

void ClusterView::redirected(const NodeId& id, const ResourceSet& request, Now now) {
  auto it = peers_.find(id);
  if (it == peers_.end() || request.empty()) return;
  recent_.push_back({id, request, now.steady_us + kRedirectMemoryUs});
  it->second.available.subtract_allowing_debt(request);
  nodes_.set_free(it->second.slot, it->second.available);
}

void ClusterView::expire(Now now) {
  while (!recent_.empty() && recent_.front().until_us <= now.steady_us) {
    NodeId id = recent_.front().node;
    recent_.pop_front();
    recompute(id);
  }
}

void ClusterView::recompute(const NodeId& id) {
  auto it = peers_.find(id);
  if (it == peers_.end()) return;
  it->second.available = it->second.reported;
  for (const Recent& recent : recent_) {
    if (recent.node == id) it->second.available.subtract_allowing_debt(recent.request);
  }
  nodes_.set_free(it->second.slot, it->second.available);
}

bool ClusterView::feasible_elsewhere(const ResourceSet& request) const {
  scheduling::NodeMask others = nodes_.having(request, scheduling::Amount::kTotal);
  if (self_slot_ != scheduling::kNoNode) others.remove(self_slot_);
  return !others.empty();
}

std::string ClusterView::describe(const ResourceSet& local) const {
  ResourceSet all = local;
  for (const auto& [id, peer] : peers_) all.add(peer.total);
  size_t nodes = peers_.size() + 1;
  // A task runs on one node, so the sum over several nodes alone would mislead the reader.
  return nodes == 1
             ? fmt::format("the cluster's one node has {}", all.to_string())
             : fmt::format(
                   "the cluster's {} nodes have {} in all, and none of them alone has enough",
                   nodes, all.to_string());
}

}  // namespace rt::node
