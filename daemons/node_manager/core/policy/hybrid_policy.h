// The strategy DEFAULT: fill a node up to a utilisation of `spread_threshold`; beyond that prefer
// the least used node. The local node wins ties.
#pragma once

#include "daemons/node_manager/core/policy/candidate.h"

namespace rt::node {

// Returns the index of the candidate that should run one more `request`, or kNoNode when no
// candidate has room for it.
int pick_hybrid(const std::vector<Candidate>& candidates, const ResourceSet& request,
                double spread_threshold);

}  // namespace rt::node
