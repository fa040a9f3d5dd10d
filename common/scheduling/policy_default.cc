// The strategy DEFAULT. Up to a threshold of utilisation work stays near whoever asks, then goes to
// the fullest node, so that few nodes are used and distances are short. Beyond the threshold the
// least utilised node is taken.
#include "common/scheduling/policy.h"

namespace rt::scheduling {

double default_cost(const Candidate& node, const Request& request) {
  if (node.utilisation > request.spread_threshold) return node.utilisation;
  // Below every node that is beyond the threshold, whose cost is positive.
  constexpr double kBelowAll = -2;
  return node.near ? kBelowAll : -node.utilisation;
}

}  // namespace rt::scheduling
