// Placement policies for actors. Nodes that cannot hold the actor are removed before a policy sees
// them (hard constraints are predicates); a policy only ranks the rest. Each policy has its own
// file; policy.cc maps a scheduling_strategy to its policy.
#pragma once

#include <string>
#include <vector>

#include "daemons/head/core/cluster.h"

namespace rt::head {

struct PlacementRequest {
  ResourceSet placement;
  // The creator's node, preferred among equals.
  NodeId owner_node;
  // Utilisation up to which pack_policy() fills a node.
  double spread_threshold = 0.5;
};

// Picks one of `fitting`, which is not empty and in the order of node ids.
using PlacementPolicy = const NodeState* (*)(const std::vector<const NodeState*>& fitting,
                                             const PlacementRequest& request);

const NodeState* pack_policy(const std::vector<const NodeState*>& fitting,
                             const PlacementRequest& request);
const NodeState* spread_policy(const std::vector<const NodeState*>& fitting,
                               const PlacementRequest& request);

// Fails with kUnsupported, naming the strategy.
Result<PlacementPolicy> policy_of(const std::string& scheduling_strategy);

// Returns the utilisation of the node's fullest resource among CPU, GPU, memory and those
// requested: 0 is idle, 1 full, and debt goes beyond. Actors count with their placement amounts
// even when they hold less, because otherwise any number of idle actors would go to the same node.
double utilisation(const NodeState& node, const ResourceSet& request);

}  // namespace rt::head
