// Random graphs of tasks on a small cluster: arguments that nearly fill the stores, children of
// children, custom resources and GPUs that tasks hold while they wait, tasks that are starved,
// actors. The real counterpart is tests/e2e/stress.py.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Runs the program that the seed decides until everything has ended, and returns its summary. It is
// a violation if a task fails without cause, is refused room, or if everything together takes much
// longer than its parts do one after the other. Every other program has faults: workers are killed.
std::string run_graphs(uint64_t seed);

}  // namespace rt::sim
