// Random work for drivers, from the scenario's seed.
#pragma once

#include "tests/sim/scenario.h"

namespace rt::sim {

// Mostly CPU, mostly milliseconds, with everything else mixed in: microseconds, seconds, fractions,
// several CPUs, waits, few retries.
TaskPlan random_task(Rng& rng);
// `count` tasks of random drivers, submitted in bursts over `over_us`.
void submit_random(Scenario& s, int count, int64_t over_us);
// Actors of random drivers, called now and then until `until_us`. Returns their ids.
std::vector<ActorId> random_actors(Scenario& s, int count, int64_t until_us);

}  // namespace rt::sim
