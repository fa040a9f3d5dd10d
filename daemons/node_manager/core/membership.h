// The nodes of the cluster as the head has told of them, and what a change among them means for the
// processes of this node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/head.pb.h"

namespace rt::node {

class Membership {
 public:
  using NodeList = google::protobuf::RepeatedPtrField<proto::Node>;

  explicit Membership(const NodeId& me);
  ~Membership();

  struct Turn {
    // The head has declared this node dead, for this reason: it must end. The rest is empty then.
    std::optional<std::string> dead;
    // Nodes that joined, drain or left. Workers and drivers hear of nothing else: what is free on a
    // node changes too often, and only node-managers need it.
    proto::HeadEvent news;
    std::vector<std::string> lines;  // for the drivers of this node to print
  };
  // NodeCore::node_changed() is told of the same nodes, unless this node is dead.
  Turn changed(const NodeList& nodes);
  // Returns the changes that a registration brings: nodes that were known here and that the head
  // does not know any more count as dead.
  NodeList since_registration(const NodeList& known_to_head) const;

  // Includes this node once the head has told of it.
  const std::map<NodeId, proto::Node>& nodes() const { return nodes_; }
  // A line for each other node that does not work as it should, for a driver that joins.
  std::vector<std::string> problems() const;

 private:
  const NodeId me_;
  std::map<NodeId, proto::Node> nodes_;
};

}  // namespace rt::node
