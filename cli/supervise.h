// `start --block`: this process stays, watches the daemons it started, and takes them along when it
// is told to end.
#pragma once

#include "common/launch/launch.h"

namespace rt::cli {

// Before the daemons are started, so that no SIGTERM falls between: from here SIGTERM, SIGINT and
// SIGHUP wait for supervise().
void hold_signals();
// Returns 0 when all daemons ended in an orderly way, 1 when one died (named, with its last words;
// the others are ended). On a signal it ends them and then itself by that signal.
int supervise(const launch::StartedNode& node);

}  // namespace rt::cli
