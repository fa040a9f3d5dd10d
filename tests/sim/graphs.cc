#include "tests/sim/graphs.h"

#include <algorithm>
#include "tests/sim/workload.h"

namespace rt::sim {
namespace {

constexpr int64_t kUnit = 4'096'000;  // Values have one size, so that room in pieces is no matter.

// Makes the program of one seed and runs it.
class Graphs {
 public:
  explicit Graphs(uint64_t seed)
      : faults_(seed % 2 == 0),
        reads_much_(seed % 5 == 3),
        units_(20 + static_cast<int64_t>(seed % 7)),
        scenario_({.seed = seed, .nodes = 0, .settings = [this](Settings& settings) {
                     settings.object_store_memory = units_ * kUnit;
                     if (reads_much_) settings.create_wait_ms = 3'600'000;
                     settings.transfer_chunk_bytes = kUnit / 5;
                     // A store that has no copy says so soon.
                     settings.seal_grace_ms = 20;
                   }}) {}

  std::string run() {
    Scenario& s = scenario_;
    build();
    for (int64_t left = between(10, 60); left > 0;) {
      const int64_t burst = std::min(left, between(1, 20));
      left -= burst;
      s.world().clock.after(between(0, 2 * kSecond), "burst", 0, [this, burst] {
        for (int64_t i = 0; i < burst; ++i) owner().submit(random_plan());
      });
    }
    for (int64_t actors = between(0, 2); actors > 0; --actors) add_actor();
    s.chaos({.worker_kills = faults_ ? 3.0 : 0.0}, 2 * kSecond + 1);
    // Faults make tasks run again. A starved demand may keep others from running for half as long
    // as it has waited.
    s.finish((faults_ ? 4 : 2) * alone_us_ + 60 * kSecond);
    if (!faults_ && s.ledger().totals().failed > 0)
      violation("a task failed although nothing was lost");
    return s.summary();
  }

 private:
  Rng& rng() { return scenario_.world().rng; }
  int64_t between(int64_t low, int64_t high) { return scenario_.world().between(low, high); }
  SimOwner& owner() {
    auto owners = scenario_.owners();
    return *owners[rng().below(owners.size())];
  }

  void build() {
    const int64_t nodes = reads_much_ ? 3 : between(1, 3);
    for (int64_t i = 0; i < nodes; ++i) {
      const auto cpus = static_cast<double>(between(1, 3));
      least_cpus_ = i == 0 ? cpus : std::min(least_cpus_, cpus);
      std::map<std::string, double> offered{{"CPU", cpus},
                                            {"slot", static_cast<double>(between(1, 2))},
                                            {"node" + std::to_string(i), 100}};
      if (rng().chance(0.5)) offered["GPU"] = static_cast<double>(between(1, 2));
      has_gpus_ |= offered.contains("GPU");
      scenario_.add_node(offered);
    }
    for (int64_t i = between(1, 2); i > 0; --i) scenario_.add_owner();
    scenario_.wait_ready();
    // Three parts of each store: what lies there for good, what tasks may hold while they wait, and
    // what passes through.
    const int64_t for_good = reads_much_ ? units_ / 3 : between(1, units_ / 2);
    kept_ = reads_much_ ? units_ / 3 : between(0, (units_ - for_good) / 2);
    passing_ = units_ - for_good - kept_;
    most_ = units_ - for_good;
    for (SimNode* node : scenario_.nodes()) {
      for (int64_t i = 0; i < for_good; ++i) {
        ObjectId id = make_object_id(make_task_id(values_.size() + 1, JobId()), 1);
        node->store()->put(id, kUnit);
        values_.push_back({id, kUnit, node->id()});
      }
    }
  }

  double cpus() {
    const double choices[] = {0.25, 0.5, 1, 1, least_cpus_};
    return choices[rng().below(std::size(choices))];
  }

  int64_t duration() {
    const int64_t us = rng().chance(0.5) ? between(5, 1000) : between(1000, 100'000);
    alone_us_ += us;
    return us;
  }

  std::vector<StoredValue> some_values(int64_t most) {
    std::vector<StoredValue> chosen;
    for (int64_t count = between(0, most); count > 0; --count) {
      const StoredValue& one = values_[rng().below(values_.size())];
      if (std::none_of(chosen.begin(), chosen.end(), [&](auto& c) { return c.id == one.id; }))
        chosen.push_back(one);
    }
    alone_us_ += static_cast<int64_t>(chosen.size()) * (kUnit / kTransferBytesPerUs);
    return chosen;
  }

  // Values that tasks may hold while they wait. Each of them counts once for the whole program.
  std::vector<StoredValue> kept_values() {
    auto chosen = some_values(std::min<int64_t>(kept_, 3));
    kept_ -= static_cast<int64_t>(chosen.size());
    return chosen;
  }

  TaskPlan plan_with(std::map<std::string, double> wanted) {
    TaskPlan plan;
    plan.function = static_cast<int>(rng().below(4));
    if (!wanted.contains("GPU") && rng().chance(0.2))
      wanted["node" + std::to_string(rng().below(scenario_.nodes().size()))] = 0.01;
    std::erase_if(wanted, [](const auto& item) { return item.second == 0; });
    plan.resources = resources(wanted);
    plan.duration_us = duration();
    plan.max_retries = -1;
    if (rng().chance(0.1)) plan.strategy = proto::SPREAD;
    if (rng().chance(0.1)) {
      plan.max_calls = static_cast<int>(between(1, 2));
      plan.function = 3 + plan.max_calls;
    }
    return plan;
  }

  TaskPlan reader() {
    TaskPlan plan = plan_with({{"CPU", cpus()}});
    plan.arguments = some_values(passing_);
    return plan;
  }

  // Needs room that tasks hold while they wait for others, and so waits for those in line behind
  // it. It needs no CPU, because they may want one.
  TaskPlan much_reader() {
    --much_left_;
    TaskPlan plan = plan_with({});
    const size_t many = static_cast<size_t>(between(passing_ + 1, most_));
    while (plan.arguments.size() < many) {
      const StoredValue& one = values_[rng().below(values_.size())];
      if (std::none_of(plan.arguments.begin(), plan.arguments.end(),
                       [&](auto& other) { return other.id == one.id; }))
        plan.arguments.push_back(one);
    }
    alone_us_ += static_cast<int64_t>(many) * (kUnit / kTransferBytesPerUs);
    return plan;
  }

  TaskPlan maker() {
    TaskPlan plan = plan_with({{"CPU", cpus()}});
    if (kept_ < 2) return plan;
    plan.makes = kUnit;
    if (faults_) {
      // Its worker may be killed while it has the value.
      plan.duration_us = between(0, kSecond);
      alone_us_ += plan.duration_us;
    }
    --kept_;
    plan.arguments = kept_values();
    return plan;
  }

  // A chain of tasks that wait for each other. Only the first one holds what others may want.
  TaskPlan family() {
    TaskPlan plan = plan_with({{"CPU", cpus()}});
    for (int64_t depth = between(1, 3); depth > 0; --depth) {
      std::map<std::string, double> wanted{{"CPU", cpus()}};
      if (depth == 1 && rng().chance(0.3)) wanted["slot"] = 1;
      if (depth == 1 && has_gpus_ && rng().chance(0.3)) wanted["GPU"] = rng().chance(0.5) ? 1 : 0.5;
      TaskPlan parent = plan_with(wanted);
      parent.child = std::make_shared<TaskPlan>(std::move(plan));
      parent.arguments = kept_values();
      plan = std::move(parent);
    }
    return plan;
  }

  // Gets its child late, when others have waited for what it holds for more than a second.
  TaskPlan holder() {
    // A task may be kept from running for up to half as long as a starved demand has waited,
    // because another one polls (reservation.h). This doubles with each one that polls.
    const bool polls = !polls_ && rng().chance(0.3);
    polls_ |= polls;
    TaskPlan plan = plan_with({{"CPU", polls ? 0 : cpus()}, {"slot", 1}});
    plan.polls = polls;
    plan.duration_us = between(0, 3 * kSecond);
    alone_us_ += plan.duration_us;
    plan.child = std::make_shared<TaskPlan>(plan_with({{"CPU", cpus()}}));
    return plan;
  }

  TaskPlan random_plan() {
    const uint64_t kind = rng().below(100);
    if (reads_much_ && kind < 10 && much_left_ > 0) return much_reader();
    if (reads_much_ && kind < 50) return family();
    if (kind < 35) return reader();
    if (kind < 50) return plan_with({{"CPU", cpus()}});
    if (kind < 60) return maker();
    if (kind < 75) return family();
    if (kind < 85) return plan_with({{"CPU", cpus()}, {"slot", 1}});
    if (kind < 95) return holder();
    return has_gpus_ ? plan_with({{"GPU", rng().chance(0.5) ? 1 : 0.25}}) : reader();
  }

  void add_actor() {
    ActorPlan plan;
    plan.max_restarts = -1;
    plan.placement = rng().chance(0.5) ? resources({{"CPU", 0.5}}) : ResourceSet();
    SimOwner& creator = owner();
    const ActorId id = creator.create_actor(plan);
    for (int64_t i = between(1, 4); i > 0; --i) {
      scenario_.world().clock.after(between(0, 2 * kSecond), "calls", 0, [this, &creator, id] {
        for (int64_t n = between(1, 8); n > 0; --n) {
          TaskPlan call;
          call.duration_us = duration();
          call.max_retries = -1;
          if (rng().chance(0.5)) call.arguments = some_values(passing_);
          if (rng().chance(0.2))
            call.child = std::make_shared<TaskPlan>(plan_with({{"CPU", cpus()}}));
          if (call.child) call.arguments = kept_values();
          creator.call(id, call);
        }
      });
    }
  }

  const bool faults_, reads_much_;
  const int64_t units_;
  Scenario scenario_;
  std::vector<StoredValue> values_;
  int64_t kept_ = 0, passing_ = 0, most_ = 0;
  int much_left_ = 4;  // how many more tasks may read much
  double least_cpus_ = 1;
  bool has_gpus_ = false, polls_ = false;
  int64_t alone_us_ = 0;  // How long everything takes one after the other.
};

}  // namespace

std::string run_graphs(uint64_t seed) { return Graphs(seed).run(); }

}  // namespace rt::sim
