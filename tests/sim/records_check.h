// Checks what must be true of key-value data and submitted jobs once nothing happens any more.
#pragma once

#include <string>

#include "tests/sim/scenario.h"

namespace rt::sim {

// Says what has still to happen; empty if the records are as they stay:
//  - the head shows what its disk has;
//  - an entry that jobs have put is there as long as one of them lives, and not longer;
//  - each submitted job has ended as its entrypoint really did, and no entrypoint runs.
// `all_kept`: the head forgets no job that has ended.
std::string records_unsettled(Scenario& s, bool all_kept);

}  // namespace rt::sim
