#include "daemons/node_manager/core/policy/hybrid_policy.h"

#include "daemons/node_manager/core/local_resources.h"

namespace rt::node {

int pick_hybrid(const std::vector<Candidate>& candidates, const ResourceSet& request,
                double spread_threshold) {
  int best = kNoNode;
  double best_score = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& node = candidates[i];
    if (!node.available->contains(request)) continue;
    double score = utilisation_after(*node.total, *node.available, request);
    if (score <= spread_threshold) score = 0;
    bool better = best == kNoNode || score < best_score ||
                  (score == best_score && node.local && !candidates[best].local);
    if (better) {
      best = static_cast<int>(i);
      best_score = score;
    }
  }
  return best;
}

}  // namespace rt::node
