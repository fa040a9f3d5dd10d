// The fixed seeds of a simulated test. SIM_SEED=N runs it with that seed only.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace rt::sim {

inline std::vector<uint64_t> seeds(uint64_t count) {
  if (const char* only = std::getenv("SIM_SEED")) return {std::strtoull(only, nullptr, 10)};
  std::vector<uint64_t> out;
  for (uint64_t seed = 1; seed <= count; ++seed) out.push_back(seed);
  return out;
}

}  // namespace rt::sim

#define FOR_SEEDS(count)                        \
  for (uint64_t seed : ::rt::sim::seeds(count)) \
    if (SCOPED_TRACE(seed); true)
