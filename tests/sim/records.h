// Random programs of clients of the head: key-value data, functions of jobs, packages, submitted
// jobs, lines of logs and samples of metrics.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Clients write, read and delete data, functions and packages, and submit, stop and delete jobs on
// one to four nodes, while the head, its disk, connections, drivers and nodes are lost. Between
// bursts there are pauses in which packages stop to be new. In the end the records are as
// records_check.h says, also for a head that is started then. Returns a summary; a violation
// aborts.
std::string run_records(uint64_t seed);

}  // namespace rt::sim
