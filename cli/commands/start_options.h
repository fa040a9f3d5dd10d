// Declares the flags of `start` and turns them into launch::NodeOptions.
#pragma once

#include "cli/terminal/command_line.h"
#include "launch/node/launch.h"

namespace rt::cli {

void declare_start_options(CommandLine& line);
// Returns kInvalid for a value that its option does not take, and kUnsupported for combinations and
// features that do not exist here. Flags of Ray's that have no effect print a notice on stderr.
Result<launch::NodeOptions> start_options(const CommandLine& line);

}  // namespace rt::cli
