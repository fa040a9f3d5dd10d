// Random clients of one object store: they lease extents, create, seal, read, give back and free,
// also before the seal arrives, and end at any moment. The pages of the arena come late, other
// stores ask for objects and go away, and copies come from other nodes. In every third program
// some clients break the rules, and in every fourth one the arguments of tasks, which wait for
// each other, nearly fill the arena.
//
// No client is given room in which somebody else reads or writes, everybody reads what was
// written, nothing is lost that somebody has or shown after it was freed, nobody waits for room
// that is there, and at the end all room is back.
#pragma once

#include <cstdint>
#include <string>

namespace rt::sim {

// Aborts on a violation; returns a summary.
std::string run_arenas(uint64_t seed);

}  // namespace rt::sim
