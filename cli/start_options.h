// From the flags of `start` to launch::NodeOptions.
#pragma once

#include "cli/command_line.h"
#include "common/launch/launch.h"

namespace rt::cli {

void declare_start_options(CommandLine& line);
// kInvalid: a value its option does not take. kUnsupported: a combination or a feature that does
// not exist. Flags that one port per node makes pointless print a notice on stderr.
Result<launch::NodeOptions> start_options(const CommandLine& line);

}  // namespace rt::cli
