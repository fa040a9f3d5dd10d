// The parts of `rayctl debug` about placement groups. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/debug/debug_text.h"

namespace rt::cli {

// Says of each group that is not complete why it is not: which bundles look for nodes, or are lost.
void explain_groups(const WaitingSnapshot& snapshot, std::vector<Explanation>* all);
// Says why the tasks or actors of a demand with a group wait in it: the state of their bundle, and
// who has what is in it.
Explanation explain_in_group(const WaitingSnapshot& snapshot, const proto::Demand& demand,
                             std::string what);

// Returns a table of which groups hold which resources of which node; empty if there is none.
std::string group_table(const WaitingSnapshot& snapshot);
// Returns the same as [{"node_id", "node_ip", "placement_group_id", "name", "bundles",
// "resources"}].
api_json::Json group_table_json(const WaitingSnapshot& snapshot);

}  // namespace rt::cli
