// Clusters of two or three nodes whose links to the head are what fails: one random program for
// each seed. Actors whose constructors take long or fail wait for room, start and end, and workers
// are killed, while the connections of the head break several times a second and hosts are cut off
// for a moment (seed % 4 == 0), while the head is restarted (1), while hosts are cut off for longer
// than the head waits for them (2), or with all of that (3).
//
// In every fifth program the disk of the head forgets, when the head crashes, what was written in
// the moments before, and nothing but submitted jobs runs: none of them counts as running when
// it does not.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Aborts on a violation; returns a summary.
std::string run_links(uint64_t seed);

}  // namespace rt::sim
