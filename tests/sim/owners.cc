#include "tests/sim/owners.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/scenario.h"

namespace rt::sim {
namespace {

constexpr int64_t kLarge = 4'096'000, kLight = 600'000;
constexpr int64_t kWorkUs = 2 * kSecond;

// Makes the program of one seed and runs it.
class Owners {
 public:
  explicit Owners(uint64_t seed)
      : faults_(seed % 2 == 1),
        scenario_({.seed = seed, .nodes = 0, .settings = [](Settings& settings) {
                     settings.transfer_chunk_bytes = kLarge / 5;
                     settings.seal_grace_ms = 20;
                   }}) {}

  std::string run() {
    Scenario& s = scenario_;
    build();
    for (int64_t left = between(20, 80); left > 0;) {
      const int64_t burst = std::min(left, between(1, 20));
      left -= burst;
      s.world().clock.after(between(0, kWorkUs), "burst", 0, [this, burst] {
        SimOwner* by = owner();
        if (!by) return;
        for (int64_t i = 0; i < burst; ++i) may_cancel(*by, by->submit(random_plan()));
      });
    }
    for (int64_t i = between(0, 2); i > 0; --i) add_actor();
    s.at_random_times(2, s.now_us() + kWorkUs, "return idle leases", [this] {
      if (SimOwner* by = owner()) by->return_idle_leases();
    });
    s.chaos({.worker_kills = faults_ ? 4.0 : 0.0, .driver_kills = faults_ ? 0.2 : 0.0}, kWorkUs);
    for (const ActorId& actor : actors_) {
      if (SimOwner* by = owner()) by->kill_actor(actor, true);
    }
    s.finish();
    for (int64_t i = between(3, 6); i > 0; --i) run_alone();
    s.finish();
    if (rng().chance(0.3)) outlive_a_driver();
    return s.summary();
  }

 private:
  Rng& rng() { return scenario_.world().rng; }
  int64_t between(int64_t low, int64_t high) { return scenario_.world().between(low, high); }
  // Null when all have ended.
  SimOwner* owner() {
    const auto owners = scenario_.owners();
    return owners.empty() ? nullptr : owners[rng().below(owners.size())];
  }

  // The first node has the smallest store. Half of each is what lies there for good.
  void build() {
    World& world = scenario_.world();
    world.owners_seek_arguments = true;
    const int64_t count = between(2, 3);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t large = i == 0 ? 4 : between(9, 12);
      world.settings.object_store_memory = 2 * large * kLarge;
      SimNode& node = scenario_.add_node({{"CPU", static_cast<double>(between(1, 3))}});
      for (int64_t n = 0; n < large; ++n) put(node, n < 2 ? kLight : kLarge);
    }
    const auto nodes = scenario_.nodes();
    for (int64_t i = between(1, 3); i > 0; --i) {
      SimOwner& made = scenario_.add_owner(*nodes[rng().below(nodes.size())]);
      if (rng().chance(0.7))
        made.tasks().set_variables({{"JOB", fmt::format("{}", i)}, {"A", "0"}});
    }
    scenario_.wait_ready();
  }

  void put(SimNode& node, int64_t size) {
    const ObjectId id = make_object_id(make_task_id(++values_made_, JobId()), 1);
    node.store()->put(id, size);
    (size == kLight ? light_ : large_)[node.id()].push_back({id, size, node.id()});
  }

  // Most of the values of one node, or some of several, or one that occurs often.
  std::vector<StoredValue> arguments() {
    const auto nodes = scenario_.nodes();
    const auto some = [&](std::map<NodeId, std::vector<StoredValue>>& from) -> auto& {
      return from[nodes[rng().below(nodes.size())]->id()];
    };
    std::vector<StoredValue> chosen;
    const uint64_t kind = rng().below(10);
    if (kind < 3) {
      chosen = some(large_);
      chosen.resize(chosen.size() - static_cast<size_t>(between(0, std::ssize(chosen) - 1)));
    } else if (kind < 6) {
      for (int64_t i = between(1, 4); i > 0; --i) {
        const auto& values = some(large_);
        chosen.push_back(values[rng().below(values.size())]);
      }
    } else {
      chosen.assign(static_cast<size_t>(between(1, 4)), some(light_).front());
    }
    return chosen;
  }

  TaskPlan random_plan() {
    TaskPlan plan;
    plan.function = static_cast<int>(rng().below(3));
    static constexpr double kCpus[] = {1, 1, 0.5, 0};
    const double cpus = kCpus[rng().below(std::size(kCpus))];
    plan.resources = cpus > 0 ? resources({{"CPU", cpus}}) : ResourceSet();
    plan.duration_us = rng().chance(0.6)   ? between(5, 3000)
                       : rng().chance(0.8) ? between(3000, 60'000)
                                           : between(60'000, kSecond);
    static constexpr int kRetries[] = {3, 3, 0, 1, -1};
    plan.max_retries = kRetries[rng().below(std::size(kRetries))];
    if (rng().chance(0.3)) {
      plan.raises = static_cast<int>(between(1, 3));
      plan.retries_errors = rng().chance(0.8);
    }
    if (rng().chance(0.1)) {
      plan.max_calls = static_cast<int>(between(1, 3));
      plan.function = 2 + plan.max_calls;
    }
    if (rng().chance(0.1)) plan.blocked_us = between(1000, 200'000);
    if (rng().chance(0.15)) plan.unready_us = between(1, 300'000);
    if (rng().chance(0.15)) plan.variables = {{"A", fmt::format("{}", between(1, 2))}};
    if (rng().chance(0.3)) plan.arguments = arguments();
    if (rng().chance(0.15) && depth_ < 3) {
      ++depth_;
      plan.child = std::make_shared<TaskPlan>(random_plan());
      --depth_;
    }
    return plan;
  }

  // It ends before the cancellation, or has not begun, or is under way.
  void may_cancel(SimOwner& by, const TaskId& id) {
    while (!id.is_nil() && rng().chance(0.3)) {
      const int64_t at_us = rng().chance(0.5) ? between(0, 5000) : between(0, 500'000);
      scenario_.world().clock.after(
          at_us, "cancel", 0, [&by, id, force = rng().chance(0.3), recursive = rng().chance(0.5)] {
            if (by.alive()) by.tasks().cancel(id, force, recursive);
          });
    }
  }

  void add_actor() {
    SimOwner* creator = owner();
    ActorPlan plan;
    static constexpr int64_t kRestarts[] = {0, 2, -1};
    plan.max_restarts = kRestarts[rng().below(std::size(kRestarts))];
    plan.placement = rng().chance(0.5) ? resources({{"CPU", 0.5}}) : ResourceSet();
    const ActorId id = creator->create_actor(plan);
    actors_.push_back(id);
    for (int64_t i = between(1, 6); i > 0; --i) {
      scenario_.world().clock.after(between(0, kWorkUs), "calls", 0, [this, id] {
        SimOwner* by = owner();
        if (!by) return;
        for (int64_t n = between(1, 8); n > 0; --n) {
          TaskPlan call;
          call.duration_us = between(5, 20'000);
          static constexpr int kRetries[] = {0, 1, 3, -1};
          call.max_retries = kRetries[rng().below(std::size(kRetries))];
          if (rng().chance(0.3)) {
            call.raises = static_cast<int>(between(1, 3));
            call.retries_errors = rng().chance(0.8);
          }
          if (rng().chance(0.2)) call.child = std::make_shared<TaskPlan>(random_plan());
          may_cancel(*by, by->call(id, call));
        }
      });
    }
  }

  // With nothing else to do, a task runs where its arguments are if they are large, and at home if
  // they are light.
  void run_alone() {
    scenario_.run_for(kSecond);  // until all nodes know that the others have room
    SimOwner* by = owner();
    if (!by) return;
    const auto nodes = scenario_.nodes();
    const SimNode& beside = *nodes[rng().below(nodes.size())];
    const bool large = rng().chance(0.5);
    TaskPlan plan;
    plan.resources = resources({{"CPU", 0.25}});
    if (large) {
      plan.arguments = large_.at(beside.id());
      plan.arguments.resize(static_cast<size_t>(between(1, std::ssize(plan.arguments))));
    } else {
      plan.arguments.assign(static_cast<size_t>(between(1, 3)), light_.at(beside.id()).front());
    }
    const TaskId id = by->submit(plan);
    scenario_.finish(30 * kSecond);
    const NodeId expected = large ? beside.id() : by->node().id();
    if (scenario_.ledger().task(id).ran_on != expected)
      violation(fmt::format("a task with {} arguments on node #{} runs elsewhere",
                            large ? "large" : "light", beside.number()));
  }

  // A detached actor works on when its driver has ended, and so do the tasks of its process, but
  // what the driver owned is freed. When the actor has ended as well, none of their workers is
  // left.
  void outlive_a_driver() {
    Scenario& s = scenario_;
    SimOwner& driver = s.add_owner();
    s.wait_ready();
    ActorPlan plan;
    plan.detached = true;
    plan.max_restarts = 1;  // Its node may be lost with the driver.
    const ActorId actor = driver.create_actor(plan);
    driver.call(actor, TaskPlan());
    driver.submit(random_plan());
    s.finish();
    SimOwner& heir = s.add_heir(driver);
    s.wait_ready();
    TaskPlan task;
    task.resources = resources({{"CPU", 0.5}});
    for (int64_t i = between(1, 10); i > 0; --i) {
      task.duration_us = between(5, 30'000);
      heir.submit(task);
    }
    s.run_for(between(0, 50 * kMs));
    SimNode& home = driver.node();
    SimStore& store = *s.nodes()[rng().below(s.nodes().size())]->store();
    store.put_for(driver_worker_id(driver.job()),
                  make_object_id(make_task_id(++values_made_, driver.job()), 1), kLight);
    if (&heir.node() != &home && &store != home.store() && rng().chance(0.5)) {
      s.kill_node(home);
    } else {
      driver.exit();
    }
    for (int64_t i = between(1, 10); i > 0; --i) heir.submit(task);
    s.finish();
    const JobId job = heir.job();
    heir.exit();
    s.add_owner();
    s.wait_ready();
    s.owners().back()->kill_actor(actor, true);
    s.run_for(between(1, 3) * kSecond);
    for (SimNode* node : s.nodes()) {
      for (const auto& [id, worker] : node->core().view().pool().all()) {
        if (worker->job == job)
          violation(fmt::format("node #{} keeps a worker of a job that is over", node->number()));
      }
    }
    s.finish();
  }

  const bool faults_;
  Scenario scenario_;
  uint64_t values_made_ = 0;
  std::map<NodeId, std::vector<StoredValue>> large_, light_;  // by their home
  std::vector<ActorId> actors_;
  int depth_ = 0;
};

}  // namespace

std::string run_owners(uint64_t seed) { return Owners(seed).run(); }

}  // namespace rt::sim
