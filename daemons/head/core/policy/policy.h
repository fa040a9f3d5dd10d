// Which node gets an actor. Nodes that cannot hold it are removed before a policy sees them (hard
// constraints are predicates); a policy only ranks the rest. One policy per file; policy.cc maps a
// scheduling_strategy to its policy.
#pragma once

#include <string>
#include <vector>

#include "daemons/head/core/cluster.h"

namespace rt::head {

struct PlacementRequest {
  ResourceSet placement;
  NodeId owner_node;  // where the creator runs: preferred among equals
  double spread_threshold = 0.5;
};

// Picks from `fitting` (not empty, in the order of node ids).
using PlacementPolicy = const NodeState* (*)(const std::vector<const NodeState*>& fitting,
                                             const PlacementRequest& request);

const NodeState* pack_policy(const std::vector<const NodeState*>& fitting,
                             const PlacementRequest& request);
const NodeState* spread_policy(const std::vector<const NodeState*>& fitting,
                               const PlacementRequest& request);

// kUnsupported names the strategy.
Result<PlacementPolicy> policy_of(const std::string& scheduling_strategy);

// The fullest of the node's CPU, GPU, memory and the requested resources, 0 to 1 and beyond. Actors
// count with what they needed to be placed, also when they hold less: otherwise any number of idle
// actors would go to the same node.
double utilisation(const NodeState& node, const ResourceSet& request);

}  // namespace rt::head
