// Checks what must be true of all placement groups once nothing happens any more.
#pragma once

#include <string>

#include "tests/sim/scenario.h"

namespace rt::sim {

// Says what has still to happen; empty if the groups are as they stay until something changes:
//  - a group is CREATED, and each of its bundles is held where the head says so; or it waits, holds
//    nothing that it does not say, and there is no room for what it lacks; or it must go, and
//    nothing of it is left;
//  - no node holds bundles besides;
//  - the tasks and calls in CREATED groups have ended, and so have all others that found room.
// `gpus_in_pieces`: bundles have parts of GPUs, so that free parts may be of no use.
std::string groups_unsettled(Scenario& s, bool gpus_in_pieces);

}  // namespace rt::sim
