// Detects what a node has (CPUs, memory, shared memory), and checks what its starter said it has.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/status.h"
#include "launch/node/launch.h"

namespace rt::launch {

// The number of CPUs that this process may use: its affinity mask, cut by the quotas of its control
// groups (versions 1 and 2); at least 1. `root` is empty except in tests, where it is a directory
// with faked proc/ and sys/ trees and `affinity` stands for the mask.
int detect_cpus(const std::string& root = "", int affinity = 0);
// The bytes of memory that a new process could use: MemAvailable, cut by what the control groups
// still allow. Returns 0 if that is unknown.
int64_t detect_memory(const std::string& root = "");

// The capacity in bytes of a store for which none was given: 30% of detect_memory(), at most 95% of
// the room that the file system of `directory` (empty: /dev/shm) has. Returns 0 if that is less
// than `min`: then the store itself finds another place or says what is missing.
int64_t detect_object_store_memory(const std::string& directory, int64_t min);
// The resources of a node for which none were given: CPU, the memory that its store leaves,
// object_store_memory (unless 0) and node:<ip>.
std::map<std::string, double> detect_totals(const std::string& node_ip,
                                            int64_t object_store_memory);

struct NodeResources {
  std::map<std::string, double> totals;  // By name, for the node-manager's --resources.
  int64_t object_store_memory = 0;       // 0: the store decides.
};
// The total resources of a node: what `options` says, and for the rest what is detected.
// Fails with kInvalid; the message names the option and what is wrong with its value. The store's
// sizes are in bytes: the least that a store takes, and the one in the settings (0: none).
Result<NodeResources> node_resources(const NodeOptions& options, const std::string& node_ip,
                                     int64_t min_object_store_memory,
                                     int64_t configured_object_store_memory);

}  // namespace rt::launch
