// What a node has (CPUs, memory, shared memory) and what its starter said it has.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/status.h"
#include "common/launch/launch.h"

namespace rt::launch {

// CPUs this process may use: its affinity mask, cut by the quotas of its control groups (versions 1
// and 2). At least 1. `root` is "" or, in tests, a directory with faked proc/ and sys/ trees; then
// `affinity` stands for the mask.
int detect_cpus(const std::string& root = "", int affinity = 0);
// Bytes a new process could use: MemAvailable, cut by what the control groups still allow. 0 when
// unknown.
int64_t detect_memory(const std::string& root = "");

// Of a store nobody chose a capacity for: 30% of detect_memory(), at most what the file system of
// `directory` (empty: /dev/shm) holds. 0 when that is less than `min`: the store itself finds
// another place or says what is missing.
int64_t detect_object_store_memory(const std::string& directory, int64_t min);
// Of a node of which nothing was said: CPU, the memory its store leaves, object_store_memory (0:
// has none), node:<ip>.
std::map<std::string, double> detect_totals(const std::string& node_ip,
                                            int64_t object_store_memory);

struct NodeResources {
  std::map<std::string, double> totals;  // by name, for --resources of the node-manager
  int64_t object_store_memory = 0;       // 0: the store decides
};
// Totals of a node: what `options` says, the rest detected. kInvalid names the option, its value
// and what is accepted.
Result<NodeResources> node_resources(const NodeOptions& options, const std::string& node_ip,
                                     int64_t min_object_store_memory,
                                     int64_t configured_object_store_memory);

}  // namespace rt::launch
