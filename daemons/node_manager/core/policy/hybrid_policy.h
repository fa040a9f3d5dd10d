// DEFAULT: pack a node up to `spread_threshold` utilisation, then prefer the least used one. This
// node wins ties.
#pragma once

#include "daemons/node_manager/core/policy/candidate.h"

namespace rt::node {

// Index of the candidate that should run one more `request` now, or kNoNode when it fits nowhere.
int pick_hybrid(const std::vector<Candidate>& candidates, const ResourceSet& request,
                double spread_threshold);

}  // namespace rt::node
