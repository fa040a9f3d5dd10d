#include "tests/sim/workload.h"

#include <algorithm>

namespace rt::sim {
namespace {

// How long a task keeps a reference.
int64_t random_keep_us(World& world) {
  if (!world.tasks_keep_references || !world.rng.chance(0.1)) return 0;
  return world.between(100, 500'000);
}

}  // namespace

TaskPlan random_task(Rng& rng) {
  auto between = [&rng](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
  };
  TaskPlan plan;
  uint64_t kind = rng.below(100);
  if (kind < 40) {
    plan.function = 0;
    plan.duration_us = between(5, 300);
  } else if (kind < 80) {
    plan.function = 1;
    plan.duration_us = between(500, 20'000);
  } else {
    plan.function = 2;
    plan.duration_us = between(50'000, 400'000);
  }
  static constexpr double kCpus[] = {1, 1, 1, 1, 0.5, 2, 0};
  double cpus = kCpus[rng.below(std::size(kCpus))];
  plan.resources = cpus > 0 ? resources({{"CPU", cpus}}) : ResourceSet();
  if (rng.chance(0.1)) plan.strategy = proto::SPREAD;
  if (rng.chance(0.2)) plan.blocked_us = between(1000, 200'000);
  if (rng.chance(0.1)) {
    plan.max_calls = static_cast<int>(between(1, 3));
    plan.function = 2 + plan.max_calls;
  }
  if (rng.chance(0.1)) plan.needed_us = between(1000, 500'000);
  if (rng.chance(0.01)) plan.crashes = static_cast<int>(between(1, 2));
  static constexpr int kRetries[] = {3, 3, 3, 0, 1, -1};
  plan.max_retries = kRetries[rng.below(std::size(kRetries))];
  return plan;
}

void submit_random(Scenario& s, int count, int64_t over_us) {
  while (count > 0) {
    int burst = static_cast<int>(std::min<int64_t>(count, s.world().between(1, 200)));
    count -= burst;
    s.world().clock.after(s.world().between(0, over_us), "burst", 0, [&s, burst] {
      auto owners = s.owners();
      if (owners.empty()) return;
      SimOwner& owner = *owners[s.world().rng.below(owners.size())];
      for (int i = 0; i < burst; ++i) {
        TaskPlan plan = random_task(s.world().rng);
        plan.keeps_us = random_keep_us(s.world());
        owner.submit(plan);
      }
    });
  }
}

std::vector<ActorId> random_actors(Scenario& s, int count, int64_t until_us) {
  std::vector<ActorId> ids;
  for (int i = 0; i < count; ++i) {
    auto owners = s.owners();
    SimOwner& owner = *owners[s.world().rng.below(owners.size())];
    ActorPlan plan;
    static constexpr int64_t kRestarts[] = {0, 2, -1};
    plan.max_restarts = kRestarts[s.world().rng.below(std::size(kRestarts))];
    plan.placement = resources({{"CPU", 1}});
    if (s.world().rng.chance(0.5)) plan.held = plan.placement;
    if (s.world().rng.chance(0.3)) plan.strategy = proto::SPREAD;
    ActorId id = owner.create_actor(plan);
    ids.push_back(id);
    s.at_random_times(30, until_us, "calls", [&s, id] {
      const auto callers = s.owners();
      if (callers.empty()) return;
      SimOwner& caller = *callers[s.world().rng.below(callers.size())];
      TaskPlan call;
      call.duration_us = s.world().between(10, 5000);
      call.max_retries = s.world().rng.chance(0.5) ? 0 : 3;
      call.keeps_us = random_keep_us(s.world());
      call.exits_actor = s.world().rng.chance(0.002);
      for (int64_t n = s.world().between(1, 5); n > 0; --n) caller.call(id, call);
    });
  }
  return ids;
}

}  // namespace rt::sim
