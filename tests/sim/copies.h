// Random programs that copy values between stores: processes on two to six nodes get values, of
// which each has one to three homes, from lists of sources that name stores without a copy, too.
// The stores' rooms and the bytes under way are bounded. In some programs stores end, connections
// break, hosts do not answer for a while, or one of them never answers again.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Runs the program of this seed, checks all invariants and returns a summary.
std::string run_copies(uint64_t seed);

}  // namespace rt::sim
