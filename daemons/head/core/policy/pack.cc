// The default policy: fills one node after the other up to the threshold, which keeps the number
// of nodes and the distances small, then takes the least utilised node.
#include "daemons/head/core/policy/policy.h"

namespace rt::head {

const NodeState* pack_policy(const std::vector<const NodeState*>& fitting,
                             const PlacementRequest& request) {
  const NodeState* best = nullptr;
  double best_score = 0;
  for (const NodeState* node : fitting) {
    double used = utilisation(*node, request.placement);
    // Below the threshold the fullest node wins and beats all nodes above it; above it the
    // emptiest wins.
    double score = used < request.spread_threshold ? 2 + used : 1 - used;
    bool local = node->id == request.owner_node;
    if (!best || score > best_score || (score == best_score && local)) {
      best = node;
      best_score = score;
    }
  }
  return best;
}

}  // namespace rt::head
