// A small seeded generator (splitmix64): the only source of randomness in core/ directories.
// Predictable, so not for secrets.
#pragma once

#include <cstdint>

namespace rt {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  // Seeded from the operating system.
  static Rng from_system();

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double probability) { return uniform() < probability; }

 private:
  uint64_t state_;
};

}  // namespace rt
