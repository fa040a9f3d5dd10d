// Random programs that use what an owner can do: errors that are retried, cancellations, leases
// that go back when nothing is left to do, variables, and arguments that a task should be near to.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Returns a summary; aborts on a violation.
std::string run_owners(uint64_t seed);

}  // namespace rt::sim
