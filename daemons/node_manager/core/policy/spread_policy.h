// SPREAD: nodes take turns, those without room are passed over.
#pragma once

#include "daemons/node_manager/core/policy/candidate.h"

namespace rt::node {

// Index of the next candidate with room for `request`, or kNoNode. `turn` is the caller's position,
// moved on by each pick; `candidates` come in a stable order.
int pick_spread(const std::vector<Candidate>& candidates, const ResourceSet& request,
                uint64_t& turn);

}  // namespace rt::node
