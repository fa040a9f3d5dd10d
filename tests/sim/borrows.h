// Reference counting between processes: tables (RefTable) that lend each other references over
// connections whose messages arrive in order, each at a random moment. Nothing that somebody refers
// to is freed, and nothing is left when nobody refers to anything. Objects have references inside,
// which whoever reads an object borrows from their owners.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Runs three processes with random puts, calls and reads until all have let go of everything, and
// returns a summary; a violation aborts.
std::string run_borrows(uint64_t seed);

}  // namespace rt::sim
