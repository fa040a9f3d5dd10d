// Random work for drivers, derived from the scenario's seed.
#pragma once

#include "tests/sim/scenario.h"

namespace rt::sim {

// Returns a task of one of three functions (microseconds, milliseconds, a tenth of a second),
// mostly for one CPU; some need none, half a one or two, some wait in get(), crash, or have few
// retries.
TaskPlan random_task(Rng& rng);
// Submits `count` tasks at random drivers, in bursts spread over `over_us`.
void submit_random(Scenario& s, int count, int64_t over_us);
// Creates `count` actors at random drivers and calls them at random times until `until_us`.
// Returns their ids.
std::vector<ActorId> random_actors(Scenario& s, int count, int64_t until_us);

}  // namespace rt::sim
