// Tasks by who submitted whom: what `summary_by=lineage` answers.
#pragma once

#include <vector>

#include "common/state/rows.h"

namespace rt::state {

// [{"name", "key", "type", "timestamp", "state_counts", "link", "children"}] of rows of tasks. A
// task is under its parent where that is among them, else at the top; the calls of an actor are
// under the actor, that one under the task that created it, siblings of one name under a GROUP.
// state_counts: of the task and all below it. timestamp: ms, null where it is not known; link:
// {"type": "task" or "actor", "id"}, null for groups.
Json lineage_of(const std::vector<Json>& rows);

}  // namespace rt::state
