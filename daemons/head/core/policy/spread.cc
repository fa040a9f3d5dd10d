// The SPREAD policy: takes the node with the fewest actors, and among these the least utilised.
#include <tuple>

#include "daemons/head/core/policy/policy.h"

namespace rt::head {

const NodeState* spread_policy(const std::vector<const NodeState*>& fitting,
                               const PlacementRequest& request) {
  const NodeState* best = nullptr;
  std::tuple<int, double> best_load;
  for (const NodeState* node : fitting) {
    std::tuple<int, double> load{node->actors, utilisation(*node, request.placement)};
    if (!best || load < best_load) {
      best = node;
      best_load = load;
    }
  }
  return best;
}

}  // namespace rt::head
