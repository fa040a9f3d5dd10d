#include "tests/sim/churn.h"

#include "tests/sim/workload.h"

namespace rt::sim {
namespace {

constexpr int64_t kLossesUs = 3 * kSecond;

class Churn {
 public:
  explicit Churn(uint64_t seed)
      : loses_processes_(seed % 4 == 1 || seed % 4 == 3),
        loses_nodes_(seed % 8 == 1 || seed % 4 == 3),
        loses_head_(seed % 4 == 2 || seed % 4 == 3),
        loses_connections_(seed % 4 == 3),
        fails_starts_(seed % 3 == 2),
        keeps_references_(seed % 3 == 1),
        worker_kills_(seed % 8 == 5 ? 100.0 : 5.0),
        scenario_({.seed = seed, .nodes = 0, .settings = [](Settings& settings) {
                     settings.node_timeout_ms = 2000;
                   }}) {}

  std::string run() {
    Scenario& s = scenario_;
    s.fail_spawns(fails_starts_ ? 0.2 : 0);
    s.world().tasks_keep_references = keeps_references_;
    nodes_ = between(2, 6);
    bring_nodes();
    for (int64_t i = between(1, 4); i > 0; --i) s.add_owner();
    s.wait_ready();
    submit_random(s, static_cast<int>(between(20, 60 * nodes_)), kLossesUs - kSecond);
    const auto actors = random_actors(s, static_cast<int>(between(0, 3)), s.now_us() + kLossesUs);
    if (loses_head_)
      s.at_random_times(1, s.now_us() + kLossesUs, "disk is full", [this] {
        scenario_.disk().full = true;
        scenario_.world().clock.after(between(1, 400 * kMs), "disk has room", 0,
                                      [this] { scenario_.disk().full = false; });
      });
    if (loses_nodes_)
      s.at_random_times(0.5, s.now_us() + kLossesUs, "drain a node", [this] { drain_node(); });
    s.chaos({.worker_kills = loses_processes_ ? worker_kills_ : 0.0,
             .node_kills = loses_nodes_ ? 0.5 : 0.0,
             .connection_breaks = loses_connections_ ? 5.0 : 0.0,
             .head_crashes = loses_head_ ? 1.0 : 0.0,
             .partitions = loses_connections_ ? 0.5 : 0.0,
             .driver_kills = loses_processes_ ? 0.3 : 0.0,
             .spare_driver_nodes = false},
            kLossesUs);
    s.disk().full = false;
    s.fail_spawns(0);
    bring_nodes();
    s.run_for(2 * kSecond);
    // Actors keep a CPU as long as they live, and tasks that want both of a node would wait for
    // ever once each node has one.
    for (const ActorId& actor : actors) {
      if (!s.owners().empty()) s.owners().front()->kill_actor(actor, true);
    }
    leave_at_once();
    s.finish();
    return s.summary();
  }

 private:
  int64_t between(int64_t low, int64_t high) { return scenario_.world().between(low, high); }
  // A driver leaves, perhaps before the head has begun its job.
  void leave_at_once() {
    SimOwner& driver = scenario_.add_owner();
    scenario_.run_for(between(1, 4 * kMs));
    scenario_.kill_owner(driver);
  }
  void drain_node() {
    const auto nodes = scenario_.nodes();
    proto::DrainRequest request;
    request.set_reason(between(0, 1) == 0 ? proto::DRAINED_IDLE : proto::DRAINED_FOR_PREEMPTION);
    request.set_deadline_ms(between(1, 1500));
    if (!nodes.empty())
      nodes[static_cast<size_t>(between(0, std::ssize(nodes) - 1))]->drain(request);
  }
  void bring_nodes() {
    while (static_cast<int64_t>(scenario_.nodes().size()) < nodes_)
      scenario_.add_node({{"CPU", static_cast<double>(between(2, 4))}});
  }

  const bool loses_processes_, loses_nodes_, loses_head_, loses_connections_, fails_starts_;
  const bool keeps_references_;
  const double worker_kills_;  // per second
  Scenario scenario_;
  int64_t nodes_ = 0;
};

}  // namespace

std::string run_churn(uint64_t seed) { return Churn(seed).run(); }

}  // namespace rt::sim
