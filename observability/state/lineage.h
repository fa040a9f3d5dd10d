// Arranges tasks in a tree by which task submitted which: the answer to `summary_by=lineage`.
#pragma once

#include <vector>

#include "observability/state/rows.h"

namespace rt::state {

// Returns [{"name", "key", "type", "timestamp", "state_counts", "link", "children"}] for rows of
// tasks. A task stands below its parent, or at the top if its parent is not among the rows. The
// calls of an actor stand below the actor, and the actor below the task that created it. Siblings
// of the same name are put into a node of type GROUP. "state_counts" covers the task and everything
// below it; "timestamp" is milliseconds, or null if not known; "link" is {"type": "task" or
// "actor", "id"}, or null for groups.
Json lineage_of(const std::vector<Json>& rows);

}  // namespace rt::state
