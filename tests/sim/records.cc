#include "tests/sim/records.h"

#include <fmt/core.h>

#include "tests/sim/records_check.h"
#include "tests/sim/sim_client.h"

namespace rt::sim {
namespace {

constexpr int64_t kBurstUs = 3 * kSecond, kPauseUs = 62 * kSecond;
constexpr int64_t kPackagesMaxBytes = 1000;

class Records {
 public:
  explicit Records(uint64_t seed)
      : loses_head_(seed % 4 >= 2),
        loses_disk_(seed % 3 == 1),
        loses_nodes_(seed % 4 == 1 || seed % 8 == 7),
        loses_connections_(seed % 4 == 3),
        loses_drivers_(seed % 8 != 0),
        all_kept_(seed % 5 != 4),
        scenario_({.seed = seed, .nodes = 0, .settings = [seed](Settings& settings) {
                     settings.node_timeout_ms = 2000;
                     settings.packages_max_bytes = kPackagesMaxBytes;
                     settings.job_start_timeout_ms = 20'000;
                     settings.job_driver_on_any_node = seed % 2 == 1;
                     if (seed % 5 == 4) settings.finished_jobs_kept = 3;
                   }}) {}

  std::string run() {
    Scenario& s = scenario_;
    nodes_ = between(1, 4);
    bring_nodes();
    for (int64_t i = between(1, 2); i > 0; --i) add_tool();
    s.wait_ready();
    sample_for_ever();
    for (int64_t burst = between(1, 3); burst > 0; --burst) {
      bring_nodes();
      for (int64_t i = between(1, 3); i > 0; --i) s.add_owner();
      run_burst();
      if (burst > 1) s.run_for(between(1, kPauseUs));
    }
    settle();
    s.restart_head(between(1, 100 * kMs));
    s.run_for(kSecond);
    settle();
    read_all();
    return s.summary();
  }

 private:
  int64_t between(int64_t low, int64_t high) { return scenario_.world().between(low, high); }
  bool chance(double part) { return scenario_.world().rng.chance(part); }
  void add_tool() {
    const int host = chance(0.5) ? kHeadHost : scenario_.random_node().host();
    tools_.push_back(scenario_.world().adopt(std::make_unique<SimClient>(scenario_.world(), host)));
  }
  void bring_nodes() {
    while (static_cast<int64_t>(scenario_.nodes().size()) < nodes_)
      scenario_.add_node({{"CPU", static_cast<double>(between(1, 4))}});
  }

  void run_burst() {
    Scenario& s = scenario_;
    const int64_t until_us = s.now_us() + kBurstUs;
    s.at_random_times(static_cast<double>(between(5, 60)), until_us, "tool",
                      [this] { use_tool(); });
    s.at_random_times(static_cast<double>(between(2, 30)), until_us, "driver",
                      [this] { use_driver(); });
    s.at_random_times(10, until_us, "line", [this] { write_line(); });
    if (loses_disk_)
      s.at_random_times(2, until_us, "disk is full", [this] {
        scenario_.disk().full = true;
        scenario_.world().clock.after(between(1, 400 * kMs), "disk has room", 0,
                                      [this] { scenario_.disk().full = false; });
      });
    s.chaos({.node_kills = loses_nodes_ ? 0.4 : 0.0,
             .connection_breaks = loses_connections_ ? 5.0 : 0.0,
             .head_crashes = loses_head_ ? 1.0 : 0.0,
             .partitions = loses_connections_ ? 0.5 : 0.0,
             .driver_kills = loses_drivers_ ? 0.7 : 0.0,
             .spare_driver_nodes = false},
            kBurstUs);
    s.disk().full = false;
    bring_nodes();
  }

  // ---- drivers: what their processes ask of the head
  void use_driver() {
    SimOwner* driver = random_driver();
    if (!driver) return;
    SimClient*& client = clients_[driver->number()];
    if (!client)
      client =
          scenario_.world().adopt(std::make_unique<SimClient>(scenario_.world(), driver->host()));
    const std::string function = fmt::format("f{}", between(0, 3));
    const JobId job = driver->job();
    switch (between(0, 9)) {
      case 0: return driver_package(*client, job);
      case 1: return create_actor(*driver);
      case 2:
      case 3: return client->get("fun", function, false);
      default: return client->put("fun", function, "code of " + function, false, job);
    }
  }
  SimOwner* random_driver() {
    std::vector<SimOwner*> joined = scenario_.owners();
    std::erase_if(joined, [](SimOwner* driver) { return !driver->joined(); });
    return joined.empty() ? nullptr
                          : joined[static_cast<size_t>(between(0, std::ssize(joined) - 1))];
  }
  void driver_package(SimClient& client, const JobId& job) {
    client.upload({.name = fmt::format("of-{}", job.hex()),
                   .pieces = static_cast<int>(between(1, 3)),
                   .piece_bytes = between(1, 50),
                   .job = job});
  }
  // The entries that its job has put must stay for as long as the actor lives.
  void create_actor(SimOwner& driver) {
    ActorPlan plan;
    plan.detached = chance(0.7);
    plan.max_restarts = -1;
    plan.name = fmt::format("a{}", ++actors_);
    driver.create_actor(plan);
  }

  // ---- tools
  void use_tool() {
    SimClient& tool = *tools_[static_cast<size_t>(between(0, std::ssize(tools_) - 1))];
    const std::string key = fmt::format("k{}", between(0, 3));
    switch (between(0, 15)) {
      case 0:
      case 1:
      case 2:
        return tool.put("data", key, fmt::format("v{}", ++values_), chance(0.6), JobId::nil());
      case 3: return tool.erase("data", key);
      case 4:
      case 5: return tool.get("data", key, true);
      case 6: return tool.list(chance(0.5) ? "data" : "fun", chance(0.5) ? "" : "k");
      case 7: return use_function(tool);
      case 8:
      case 9: return upload(tool);
      case 10:
      case 11:
      case 12: return submit(tool);
      default: return use_job(tool);
    }
  }
  // A tool may keep a function for good, or delete it.
  void use_function(SimClient& tool) {
    const std::string key = fmt::format("f{}", between(2, 5));
    if (key == "f2" || key == "f3") return tool.get("fun", key, false);
    if (chance(0.3)) return tool.erase("fun", key);
    const JobId job = random_driver() && chance(0.8) ? random_driver()->job() : JobId::nil();
    tool.put("fun", key, "code of " + key, chance(0.5), job);
  }
  std::string random_package() { return fmt::format("package{}", between(0, 5)); }
  void upload(SimClient& tool) {
    const std::string name = random_package();
    const int64_t number = name.back() - '0';
    tool.upload({.name = name,
                 .pieces = static_cast<int>(1 + number % 3),
                 .piece_bytes = 60 + 40 * number,
                 .job = JobId::nil()});
  }
  void submit(SimClient& tool) {
    JobPlan plan;
    plan.submission_id = fmt::format("job{}", submitted() + 1);
    // The id of a job that was deleted is free.
    if (submitted() > 0 && chance(0.2)) {
      const JobRecord& other = record(random_job());
      if (other.deleted) plan.submission_id = other.plan.submission_id;
    }
    plan.duration_us = chance(0.2) ? between(1, 20 * kSecond) : between(1, kSecond);
    plan.succeeds = chance(0.7);
    plan.starts = chance(0.95);
    if (chance(0.4)) plan.package = random_package();
    ResourceSet needs;
    if (chance(0.5)) needs = resources({{"CPU", static_cast<double>(between(1, 3))}});
    tool.submit(plan, needs);
  }
  size_t submitted() { return scenario_.world().jobs.all().size(); }
  JobRecord& record(size_t job) { return scenario_.world().jobs.record(job); }
  size_t random_job() {
    const auto last = static_cast<int64_t>(submitted()) - 1;
    return static_cast<size_t>(between(std::max<int64_t>(0, last - 9), last));
  }
  void use_job(SimClient& tool) {
    if (submitted() == 0) return;
    const size_t job = random_job();
    if (all_kept_ && chance(0.4)) return tool.look_at(job);
    chance(0.6) ? tool.stop(job) : tool.remove(job);
  }

  // ---- nodes
  void write_line() {
    if (scenario_.nodes().empty()) return;
    const auto jobs = scenario_.owners();
    const auto job = static_cast<size_t>(between(0, std::ssize(jobs)));
    scenario_.random_node().reports().publish(job < jobs.size() ? jobs[job]->job() : JobId::nil(),
                                              fmt::format("line {}", ++lines_));
  }
  void sample_for_ever() {
    for (SimNode* node : scenario_.nodes()) node->reports().sample(static_cast<int>(between(0, 9)));
    if (scenario_.world().head && chance(0.5)) scenario_.head().records().sample_cluster();
    scenario_.world().clock.after(between(1, 700 * kMs), "samples", 0,
                                  [this] { sample_for_ever(); });
  }

  // ---- the end
  void settle() {
    Scenario& s = scenario_;
    bring_nodes();
    s.run_for(2 * kSecond);
    const int64_t limit_us = s.now_us() + 90 * kSecond;
    for (std::string why = records_unsettled(s, all_kept_); !why.empty();
         why = records_unsettled(s, all_kept_)) {
      if (s.now_us() > limit_us) violation("the records do not settle: " + why);
      s.run_for(100 * kMs);
    }
    s.finish();
  }
  void read_all() {
    for (SimClient* tool : tools_) {
      for (int key = 0; key < 4; ++key) tool->get("data", fmt::format("k{}", key), true);
      for (size_t job = 0; job < submitted() && all_kept_; ++job) tool->look_at(job);
    }
    scenario_.run_for(kSecond);
  }

  const bool loses_head_, loses_disk_, loses_nodes_, loses_connections_, loses_drivers_, all_kept_;
  Scenario scenario_;
  int64_t nodes_ = 0, values_ = 0, lines_ = 0, actors_ = 0;
  std::vector<SimClient*> tools_;
  std::map<uint64_t, SimClient*> clients_;  // by the number of their driver
};

}  // namespace

std::string run_records(uint64_t seed) { return Records(seed).run(); }

}  // namespace rt::sim
