// A node-manager that watches its store and the metrics of its processes: a store that hangs
// now and then, requests of jobs that wait in it for room, and processes that count, report and
// end.
//
// A store that hangs is said to within the bound, and no other one; it is never asked twice at
// once. The driver of a job is told once an episode that its requests wait, and the head knows
// what waits. The sums of counters are those of all processes, also of those that have ended.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Aborts on a violation; returns a summary.
std::string run_watches(uint64_t seed);

}  // namespace rt::sim
