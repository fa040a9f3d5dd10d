// The lines of `rayctl status` about what waits for resources. Pure functions.
#pragma once

#include <string>

#include "common/proto/head.pb.h"

namespace rt::state {

// One line for tasks and actors with the same demand, and one for placement groups with the same
// bundles, each with its reasons below it; a line that says so if nothing waits.
std::string demand_lines(const proto::ClusterStatusReply& status);

}  // namespace rt::state
