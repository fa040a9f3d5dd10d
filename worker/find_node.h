// Where a driver attaches: a node-manager of this machine.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/proto/common.pb.h"

namespace rt::worker {

// Asks the head at `head_address` (HOST:PORT) for the nodes of its cluster: the head's own node if
// it is on this machine, else any that is. Blocks. kUnavailable names what answered instead of a
// head, or that the cluster has no node here, and the remedy.
Result<proto::Node> find_local_node(const std::string& head_address, const std::string& token,
                                    int64_t timeout_us);

}  // namespace rt::worker
