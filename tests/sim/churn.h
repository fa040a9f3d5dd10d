// Clusters that lose what a cluster can lose: one random program for each seed, on two to six
// nodes, with random tasks and actors (workload.h).
//
// A seed divisible by four loses nothing, so that the ledger's strictest rules apply. The others
// lose processes and every other time nodes (1) or workers twenty times as often (5 of eight), the
// head and room on its disk (2), or all of these and connections, with partitions that last longer
// than the head waits for a silent node (3). With every third seed starts of workers fail. When no
// more faults come, a driver leaves as soon as it has come.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Returns a summary; a violation aborts.
std::string run_churn(uint64_t seed);

}  // namespace rt::sim
