#include "tests/sim/links.h"

#include <fmt/core.h>

#include "tests/sim/records_check.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sim_client.h"

namespace rt::sim {
namespace {

constexpr int64_t kBreaksUs = 3 * kSecond;

class Links {
 public:
  explicit Links(uint64_t seed)
      : forgets_(seed % 5 == 4),
        breaks_(!forgets_ && (seed % 4 == 0 || seed % 4 == 3)),
        cuts_off_(!forgets_ && seed % 4 >= 2),
        loses_head_(forgets_ || seed % 2 == 1),
        scenario_(
            {.seed = seed,
             .nodes = 0,
             .network = {.notice_lost_host_max_us = 300 * kMs, .connect_timeout_us = 200 * kMs},
             .settings = [seed](Settings& settings) {
               settings.node_timeout_ms = seed % 4 >= 2 ? 1500 : 2000;
               settings.actor_placement_wait_ms = seed % 3 == 0 ? 500 : 100;
             }}) {}

  std::string run() {
    Scenario& s = scenario_;
    s.disk().forgets = forgets_;
    s.world().reaped_within_us = between(1, 300) * kMs;
    nodes_ = between(2, 3);
    bring_nodes();
    if (!forgets_) {
      for (int64_t i = between(1, 2); i > 0; --i) s.add_owner();
    }
    s.wait_ready();
    const int64_t until_us = s.now_us() + kBreaksUs;
    forgets_ ? submit_jobs(until_us) : make_work(until_us);
    if (breaks_)
      s.at_random_times(static_cast<double>(between(3, 12)), until_us, "break link",
                        [this] { scenario_.world().network.break_random(kHeadHost); });
    s.chaos({.worker_kills = forgets_ ? 0.0 : 6.0,
             .head_crashes = loses_head_ ? 1.5 : 0.0,
             .partitions = cuts_off_ ? 0.7
                           : breaks_ ? 1.5
                                     : 0.0,
             .partition_max_us = cuts_off_ ? 4 * kSecond : kSecond},
            kBreaksUs);
    bring_nodes();
    s.run_for(2 * kSecond);
    for (const ActorId& actor : actors_) {
      if (!s.owners().empty()) s.owners().front()->kill_actor(actor, true);
    }
    if (forgets_) settle_jobs();
    s.finish();
    for (int64_t i = between(1, 3); i > 0 && !s.owners().empty(); --i) call_an_orphan();
    s.finish();
    return s.summary();
  }

 private:
  int64_t between(int64_t low, int64_t high) { return scenario_.world().between(low, high); }
  bool chance(double part) { return scenario_.world().rng.chance(part); }
  void bring_nodes() {
    while (static_cast<int64_t>(scenario_.nodes().size()) < nodes_)
      scenario_.add_node({{"CPU", static_cast<double>(between(2, 3))}});
  }

  // ---- actors and tasks
  void make_work(int64_t until_us) {
    scenario_.at_random_times(static_cast<double>(between(4, 25)), until_us, "actor",
                              [this] { make_actor(); });
    scenario_.at_random_times(static_cast<double>(between(1, 50)), until_us, "task",
                              [this] { submit_task(); });
  }
  // Keeps a CPU of which the head hears a moment later.
  void submit_task() {
    TaskPlan plan;
    plan.resources = resources({{"CPU", static_cast<double>(between(1, 2))}});
    plan.duration_us = between(1, 300 * kMs);
    plan.max_retries = -1;
    const auto owners = scenario_.owners();
    if (!owners.empty()) owners[scenario_.world().rng.below(owners.size())]->submit(plan);
  }
  void make_actor() {
    const auto owners = scenario_.owners();
    if (owners.empty()) return;
    SimOwner& owner = *owners[scenario_.world().rng.below(owners.size())];
    ActorPlan plan;
    static constexpr int64_t kRestarts[] = {0, 2, -1};
    plan.max_restarts = kRestarts[scenario_.world().rng.below(std::size(kRestarts))];
    plan.placement = resources({{"CPU", 1}});
    if (chance(0.5)) plan.held = plan.placement;
    if (chance(0.3)) plan.strategy = proto::SPREAD;
    plan.constructor_us = chance(0.5) ? between(100, 10'000) : between(1000, 500'000);
    plan.constructor_raises = chance(0.25);
    const ActorId id = owner.create_actor(plan);
    actors_.push_back(id);
    TaskPlan call;
    call.duration_us = between(10, 5000);
    call.max_retries = chance(0.5) ? 0 : 3;
    owner.call(id, call);
    scenario_.world().clock.after(between(1, kSecond), "actor is over", 0, [this, id] {
      if (!scenario_.owners().empty()) scenario_.owners().front()->kill_actor(id, true);
    });
  }

  // The process that makes an actor is killed while another one, which has its handle already,
  // calls it. Whether the head ever hears of the actor is left to chance.
  void call_an_orphan() {
    Scenario& s = scenario_;
    SimOwner& caller = *s.owners().front();
    SimOwner& maker = s.add_owner();
    s.wait_ready();
    const ActorId actor = maker.create_actor(ActorPlan());
    caller.call(actor, TaskPlan());
    s.run_for(between(0, 500));
    s.kill_owner(maker);
  }

  // ---- submitted jobs
  void submit_jobs(int64_t until_us) {
    tool_ = scenario_.world().adopt(std::make_unique<SimClient>(scenario_.world(), kHeadHost));
    scenario_.at_random_times(static_cast<double>(between(3, 20)), until_us, "submit", [this] {
      JobPlan plan;
      plan.submission_id = fmt::format("job{}", ++jobs_);
      plan.duration_us = between(1, kSecond);
      plan.succeeds = chance(0.7);
      tool_->submit(plan, ResourceSet());
    });
  }
  void settle_jobs() {
    const int64_t limit_us = scenario_.now_us() + 60 * kSecond;
    for (std::string why = records_unsettled(scenario_, false); !why.empty();
         why = records_unsettled(scenario_, false)) {
      if (scenario_.now_us() > limit_us) violation("the jobs do not settle: " + why);
      scenario_.run_for(100 * kMs);
    }
  }

  const bool forgets_, breaks_, cuts_off_, loses_head_;
  Scenario scenario_;
  int64_t nodes_ = 0, jobs_ = 0;
  std::vector<ActorId> actors_;
  SimClient* tool_ = nullptr;
};

}  // namespace

std::string run_links(uint64_t seed) { return Links(seed).run(); }

}  // namespace rt::sim
