// `start --block`: the process stays in the foreground, watches the daemons it started, and ends
// them when a signal ends it.
#pragma once

#include "launch/node/launch.h"

namespace rt::cli {

// Blocks SIGTERM, SIGINT and SIGHUP, but for those that are ignored, until supervise() reads them.
// Call it before the daemons are started: a signal that arrives between start and supervise() would
// leave them running.
void hold_signals();
// Returns 0 when all daemons have ended in an orderly way. When one dies, it prints which one and
// its last words, ends the others, and returns 1. On a signal it ends the daemons and then this
// process by the same signal.
int supervise(const launch::StartedNode& node);

}  // namespace rt::cli
