// The strategy SPREAD: nodes take turns, and nodes without room are skipped.
#pragma once

#include "daemons/node_manager/core/policy/candidate.h"

namespace rt::node {

// Returns the index of the next candidate with room for `request`, or kNoNode. `turn` is the
// caller's position in the rotation and is advanced by each pick. The order of `candidates` must
// not change from call to call.
int pick_spread(const std::vector<Candidate>& candidates, const ResourceSet& request,
                uint64_t& turn);

}  // namespace rt::node
