// Generators and concurrency groups: one random program for each seed. An owner submits generator
// calls to an actor whose groups run several calls at a time, and takes, drops or cancels the
// streams. Connections break, and the calls are then sent again.
//
// The owner runs GeneratorStreams and RefTable, the actor CallGroups.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Returns a summary; a violation aborts.
std::string run_streams(uint64_t seed);

}  // namespace rt::sim
