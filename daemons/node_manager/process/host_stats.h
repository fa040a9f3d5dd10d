// What this machine does, as the operating system tells it.
#pragma once

#include <string>
#include <vector>

#include "common/proto/node_manager.pb.h"

namespace rt::node {

// `processes`: of whose use of the machine is told, those that have ended are left out.
// `directory`: the file system it is on is the disk that counts.
proto::HostStats host_stats(const std::vector<int>& processes, const std::string& directory);

// The machine alone, without what does not change and without processes: cheap enough to be read
// every few seconds.
proto::HostStats host_load(const std::string& directory);

// Between two readings; zeros when they are not apart. Bytes per second.
struct HostRates {
  double cpu_percent = 0, received = 0, sent = 0, seconds = 0;
};
HostRates host_rates(const proto::HostStats& before, const proto::HostStats& now);

}  // namespace rt::node
