// The other nodes as the head last described them, less what was redirected to them since: their
// reports lag behind our decisions.
#pragma once

#include <deque>
#include <map>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"

namespace rt::node {

class ClusterView {
 public:
  explicit ClusterView(NodeId self) : self_(self) {}

  struct Peer {
    proto::Node node;
    ResourceSet total, available;  // `available` less what was redirected there recently
    ResourceSet reported;          // as reported
  };

  // Stale news (an older incarnation of a known node) is ignored, a dead node forgotten.
  void update(const proto::Node& node);
  // `request` was sent to `id`: it counts as taken for a while.
  void redirected(const NodeId& id, const ResourceSet& request, int64_t now_us);
  void expire(int64_t now_us);

  const std::map<NodeId, Peer>& peers() const { return peers_; }
  bool feasible_elsewhere(const ResourceSet& request) const;
  // "2 nodes with {'CPU': 4.0, ...} in all", for people; includes `local`.
  std::string describe(const ResourceSet& local) const;

 private:
  struct Recent {
    NodeId node;
    ResourceSet request;
    int64_t until_us;
  };
  void recompute(const NodeId& id);

  NodeId self_;
  std::map<NodeId, Peer> peers_;
  std::deque<Recent> recent_;
};

}  // namespace rt::node
