// The head's messages to nodes about the bundles of placement groups, and its words for people.
#pragma once

#include <string>
#include <vector>

#include "daemons/head/core/cluster.h"
#include "daemons/head/core/groups.h"

namespace rt::head {

// Asks the node to reserve its part of the group's attempt.
void send_prepare(HeadSink& sink, const Group& group, const NodeState& node);

// Names bundles of one attempt or of earlier ones; without indexes it means all bundles of the
// group.
struct BundlesToReturn {
  GroupId group;
  int64_t epoch = 0;
  std::vector<int> indexes;
};
// Has the node give bundles back. A node that is not connected is not told: when it comes back it
// says what it holds.
void give_back(HeadSink& sink, const Cluster& cluster, const NodeId& node,
               const BundlesToReturn& bundles, const proto::ExitInfo& why);

// Returns, for each bundle of a group that was created, the slot of the node that holds it.
scheduling::BundleNodes kept_nodes(const Group& group, const Cluster& cluster);
// Returns why a group in a queue has no nodes.
scheduling::BundleShortage shortage_of(const Group& group, const Cluster& cluster);

// Describes groups as lists show them. The groups of one shape share an explanation.
class GroupWords {
 public:
  // `cluster` must outlive this object.
  explicit GroupWords(const Cluster& cluster) : cluster_(cluster) {}
  proto::GroupInfo shown(const Group& group);

 private:
  const Cluster& cluster_;
  std::map<std::string, scheduling::BundleShortage> known_;  // By shape.
};

}  // namespace rt::head
