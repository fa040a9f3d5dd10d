// A simulated cluster for tests to script: build it, run it, break it, heal it, and check that all
// work ends.
//
// Each event of a core is followed by the core's check_invariants(); the ledger checks what no
// single core can see. A violation aborts with the seed and the last events. There can be only one
// scenario at a time. All times are virtual.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/sim_head.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/sim_owner.h"
#include "tests/sim/world.h"

namespace rt::sim {

inline constexpr int64_t kMs = 1000, kSecond = 1'000'000;

struct ScenarioOptions {
  uint64_t seed = 1;
  int nodes = 10;
  std::map<std::string, double> node_resources{{"CPU", 4}};
  NetworkOptions network;
  std::function<void(Settings&)> settings;
};

// Rates of faults, per second of virtual time.
struct Chaos {
  double worker_kills = 0, node_kills = 0, connection_breaks = 0, head_crashes = 0, partitions = 0,
         driver_kills = 0;
  int64_t head_down_max_us = kSecond, partition_max_us = 3 * kSecond;
  bool spare_driver_nodes = true;  // node_kills do not hit nodes that have a driver
};

ResourceSet resources(const std::map<std::string, double>& amounts);

class Scenario {
 public:
  explicit Scenario(ScenarioOptions options);
  ~Scenario();

  // ---- build
  SimNode& add_node(const std::map<std::string, double>& resources);
  SimOwner& add_owner(SimNode& node);
  SimOwner& add_owner() { return add_owner(random_node()); }
  // A process that works on for the job of a driver that may end.
  SimOwner& add_heir(const SimOwner& driver);
  // Runs until all nodes have registered and all drivers have joined.
  void wait_ready();

  // ---- time
  void run_for(int64_t us);
  // Runs until `done()` is true; it is a violation if that takes longer than `limit_us`.
  void run_until(const char* what, const std::function<bool()>& done,
                 int64_t limit_us = 60 * kSecond);
  // Schedules `event` at random times until `until_us`, on average `per_second` times a second.
  void at_random_times(double per_second, int64_t until_us, const char* what,
                       std::function<void()> event);
  // Runs for `us` with random faults. Afterwards the network is healed and the head is up.
  void chaos(const Chaos& chaos, int64_t us);
  // To be called when there are no more faults. Runs until every task of the living drivers has
  // ended, and then until all leases and resources are back, on the nodes and in the head's view.
  // It is a violation if that does not happen in time.
  void finish(int64_t limit_us = 180 * kSecond);

  // ---- faults
  void kill_worker(SimWorker& worker);
  bool kill_random_worker();
  void kill_node(SimNode& node);
  bool kill_random_node(bool spare_driver_nodes);
  void crash_head();
  void start_head();
  void restart_head(int64_t down_us);
  void break_random_connection();
  void partition(const std::vector<SimNode*>& group, double broken_connections);
  void heal() { world_.network.heal(); }
  void kill_owner(SimOwner& owner);
  void fail_spawns(double part);  // this share of the starts of workers fails; 0: none

  // ---- queries
  World& world() { return world_; }
  Disk& disk() { return disk_; }
  Ledger& ledger() { return world_.ledger; }
  SimHead& head() { return *world_.head; }
  std::vector<SimNode*> nodes() const;    // alive, in the order they were added
  std::vector<SimOwner*> owners() const;  // alive
  SimNode& random_node();
  int64_t now_us() const { return world_.clock.now_us(); }
  uint64_t hash() const { return world_.clock.hash(); }
  std::string summary() const;

 private:
  // Says what is still going on; empty if the cluster is idle.
  std::string not_idle() const;
  // Says which record on the disk is not what the head knows; empty if there is none.
  std::string not_on_disk() const;

  ScenarioOptions options_;
  World world_;
  Disk disk_;
  std::vector<SimNode*> all_nodes_;
  std::vector<SimOwner*> all_owners_;
  int last_host_ = kHeadHost;
  int nodes_killed_ = 0, head_crashes_ = 0;
};

}  // namespace rt::sim
