// What this machine does, as the operating system tells it.
#pragma once

#include <string>
#include <vector>

#include "common/proto/node_manager.pb.h"

namespace rt::node {

// `processes`: of whose use of the machine is told, those that have ended are left out. `directory`: the file system it is on is the disk that counts.
proto::HostStats host_stats(const std::vector<int>& processes, const std::string& directory);

}  // namespace rt::node
