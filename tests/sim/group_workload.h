// Random placement groups on a small cluster: all strategies, bundles that nearly fill the nodes,
// tasks, children and actors in them, plain tasks beside them, removals at any moment. Which faults
// there are depends on the seed: none; workers and nodes that are lost; restarts of the head with a
// disk that is full at times; all of these, and connections that break.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Runs the program that the seed decides until everything has ended, and returns its summary. It is
// a violation if, once faults have stopped, a group is half placed, waits although there is room
// for it, or leaves anything behind, or if a task that could run has not run.
std::string run_groups(uint64_t seed);

}  // namespace rt::sim
