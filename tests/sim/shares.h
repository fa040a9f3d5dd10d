// Owners that share too few workers: one random program for each seed, on one or two nodes.
//
// Every owner always has more tasks than there are workers, from some moment until the end, so that
// no lease ever becomes idle. Whoever begins later, be it an owner, an actor or a placement group,
// gets its part soon all the same, because leases are revoked. The actors of the group want more
// than it has. At the end a driver ends, and the head is lost at about the same time.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Returns a summary; a violation aborts.
std::string run_shares(uint64_t seed);

}  // namespace rt::sim
