// Finds the node-manager of this machine that a driver attaches to.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/proto/common.pb.h"

namespace rt::worker {

// Asks the head at `head_address` (HOST:PORT) for the nodes of its cluster and returns the head's
// own node if it runs on this machine, else any other node that does. Blocks for at most
// `timeout_us` per step. Fails with kNotFound when the address belongs to another process than a
// head, or when the cluster has no node here; only then does the message name the whole remedy.
Result<proto::Node> find_local_node(const std::string& head_address, const std::string& token,
                                    int64_t timeout_us);

}  // namespace rt::worker
