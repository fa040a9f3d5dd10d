// The nodes of the cluster as this node sees them: itself, and the others as the head last
// described them, less the requests this node redirected to them recently. A peer's report arrives
// later than the redirect that it does not account for yet.
#pragma once

#include <deque>
#include <map>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "common/scheduling/nodes.h"

namespace rt::node {

class ClusterView {
 public:
  ClusterView(NodeId self, const scheduling::Labels& labels, const ResourceSet& total);
  ~ClusterView();

  struct Peer {
    proto::Node node;
    // `available` is `reported` less what was redirected to the peer recently; it may be negative.
    ResourceSet total, available;
    ResourceSet reported;  // free according to the peer's last report
    scheduling::NodeSlot slot = scheduling::kNoNode;
  };

  // Records what the head says of a node. Ignores this node itself and a description that is older
  // (by `incarnation`) than the known one. Forgets a node that is dead, whatever the incarnation in
  // that report: an id does not come back to life, and a restarted head that declares a node dead
  // knows only the incarnation of the node's registration.
  void update(const proto::Node& node);
  // Counts `request` as taken at peer `id` until the peer's reports can be expected to include it.
  void redirected(const NodeId& id, const ResourceSet& request, Now now);
  // Gives back what redirects older than that period had taken. Call this on every tick.
  void expire(Now now);

  // Sets what this node may give away from now on.
  void set_free_here(const ResourceSet& free) { nodes_.set_free(self_slot_, free); }
  // This node takes nothing new from now on, and nothing may wait for it.
  void leave();

  const std::map<NodeId, Peer>& peers() const { return peers_; }
  // The nodes among which demands are placed. This node is one of them until leave().
  const scheduling::Nodes& nodes() const { return nodes_; }
  scheduling::NodeSlot self() const { return self_slot_; }  // kNoNode after leave()
  // True if a peer has `request` in total, whether or not it is free at the moment.
  bool feasible_elsewhere(const ResourceSet& request) const;
  // Describes for people what the cluster's nodes have in total; `local` is this node's total.
  std::string describe(const ResourceSet& local) const;

 private:
  struct Recent {
    NodeId node;
    ResourceSet request;
    int64_t until_us;
  };
  void recompute(const NodeId& id);  // derives the peer's `available`

  NodeId self_;
  scheduling::Nodes nodes_;
  scheduling::NodeSlot self_slot_;
  std::map<NodeId, Peer> peers_;
  std::deque<Recent> recent_;  // oldest first
};

}  // namespace rt::node
