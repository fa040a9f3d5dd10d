// The load of this machine, according to the operating system.
#pragma once

#include <string>
#include <vector>

#include "common/proto/node_manager.pb.h"

namespace rt::node {

// Returns everything that HostStats has. `processes` lists the process ids whose usage is
// included; those that have ended are left out. The disk reported is the file system of
// `directory`.
proto::HostStats host_stats(const std::vector<int>& processes, const std::string& directory);

// Returns CPU, memory, disk and network only, which is cheap enough to be read every few seconds.
proto::HostStats host_load(const std::string& directory);

// Rates between two readings: `received` and `sent` in bytes per second, `seconds` between them.
// The rates are zero if no time has passed.
struct HostRates {
  double cpu_percent = 0, received = 0, sent = 0, seconds = 0;
};
HostRates host_rates(const proto::HostStats& before, const proto::HostStats& now);

}  // namespace rt::node
