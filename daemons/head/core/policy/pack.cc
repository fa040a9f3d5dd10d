// Default: fill nodes up to the threshold one after the other (few nodes in use, short ways), then
// the least utilised one.
#include "daemons/head/core/policy/policy.h"

namespace rt::head {

const NodeState* pack_policy(const std::vector<const NodeState*>& fitting,
                             const PlacementRequest& request) {
  const NodeState* best = nullptr;
  double best_score = 0;
  for (const NodeState* node : fitting) {
    double used = utilisation(*node, request.placement);
    // Below the threshold the fullest wins and beats everything above it; above it the emptiest.
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
