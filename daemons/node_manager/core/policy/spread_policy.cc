#include "daemons/node_manager/core/policy/spread_policy.h"

namespace rt::node {

int pick_spread(const std::vector<Candidate>& candidates, const ResourceSet& request,
                uint64_t& turn) {
  for (size_t step = 0; step < candidates.size(); ++step) {
    size_t i = (turn + step) % candidates.size();
    if (!candidates[i].available->contains(request)) continue;
    turn = i + 1;
    return static_cast<int>(i);
  }
  return kNoNode;
}

}  // namespace rt::node
