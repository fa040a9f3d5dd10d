#include "tests/sim/shares.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/workload.h"

namespace rt::sim {
namespace {

constexpr int64_t kBeginUs = 3 * kSecond;

class Shares {
 public:
  explicit Shares(uint64_t seed) : scenario_({.seed = seed, .nodes = 0}) {}

  std::string run() {
    Scenario& s = scenario_;
    nodes_ = between(1, 2);
    for (int64_t i = 0; i < nodes_; ++i) {
      const int64_t cpus = between(1, 4);
      cpus_ += cpus;
      s.add_node({{"CPU", static_cast<double>(cpus)}});
    }
    // Not more than there are CPUs after the actor and the group have got theirs.
    const int64_t owners = between(2, std::max<int64_t>(2, cpus_ - 2));
    for (int64_t i = 0; i < owners; ++i) s.add_owner();
    s.wait_ready();
    // Everybody that begins has its limit before the work ends.
    const int64_t length_us = kBeginUs + limit_us();
    end_us_ = s.now_us() + length_us;
    for (SimOwner* owner : s.owners())
      after(between(0, kBeginUs), [this, owner] { begin(*owner); });
    if (cpus_ >= 3) after(between(0, kBeginUs), [this] { add_actor(); });
    if (cpus_ >= 4) after(between(0, kBeginUs), [this] { add_group(); });
    s.run_for(length_us + kSecond);
    if (!actor_.is_nil()) actor_owner_->kill_actor(actor_, true);
    if (!group_.is_nil()) actor_owner_->remove_group(group_);
    s.finish();
    end_driver_and_crash();
    return s.summary();
  }

 private:
  int64_t between(int64_t low, int64_t high) { return scenario_.world().between(low, high); }
  void after(int64_t delay_us, std::function<void()> run) {
    scenario_.world().clock.after(delay_us, "program", 0, std::move(run));
  }
  // How long somebody may wait: until its node has sent it to another one because actors and groups
  // hold the CPUs, until leases are revoked, until the tasks that run have ended, and again for as
  // many as there are before it.
  int64_t limit_us() {
    const int64_t revoke_us = scenario_.world().settings.lease_revoke_after_ms * kMs;
    return static_cast<int64_t>(scenario_.owners().size() + 2) * (revoke_us + kLongestUs) +
           kSecond + (nodes_ > 1 ? 10 * revoke_us + kSecond : 0);
  }

  // The head may have answered that the job has ended, and be lost before that is on its disk.
  void end_driver_and_crash() {
    scenario_.kill_owner(*scenario_.owners().back());
    after(between(0, 5 * kMs), [this] { scenario_.restart_head(between(1, kSecond)); });
    scenario_.run_for(2 * kSecond);
    scenario_.finish();
  }

  void begin(SimOwner& owner) {
    const int64_t before = owner.succeeded();
    const int64_t task_us = between(1000, kLongestUs);
    fill(owner, task_us);
    after(limit_us(), [this, &owner, before] {
      if (owner.succeeded() == before)
        violation(fmt::format("owner #{} waits for workers that others keep", owner.number()));
    });
  }
  void fill(SimOwner& owner, int64_t task_us) {
    if (scenario_.now_us() > end_us_) return;
    while (owner.pending() < 4 * cpus_ + 2 * kRefillUs / task_us) {
      TaskPlan plan;
      plan.function = 0;
      plan.resources = resources({{"CPU", 1}});
      plan.duration_us = task_us;
      owner.submit(plan);
    }
    after(kRefillUs, [this, &owner, task_us] { fill(owner, task_us); });
  }

  void add_actor() {
    actor_owner_ = scenario_.owners().front();
    ActorPlan plan;
    plan.placement = plan.held = resources({{"CPU", 1}});
    actor_ = actor_owner_->create_actor(plan);
    // Handles have come to the other drivers, which hear of the actor as well.
    for (SimOwner* owner : scenario_.owners()) {
      after(between(0, kSecond), [this, owner] {
        TaskPlan call;
        call.duration_us = 1000;
        owner->call(actor_, call);
      });
    }
    after(limit_us(), [this] {
      if (scenario_.ledger().actor(actor_).living.empty())
        violation("an actor waits for a CPU that tasks keep");
    });
  }
  void add_group() {
    actor_owner_ = scenario_.owners().front();
    GroupPlan plan;
    plan.bundles = {resources({{"CPU", 1}})};
    group_ = actor_owner_->create_group(plan);
    // Two of them fit into the bundle, and the others wait for as long as these live.
    for (int64_t i = between(0, 4); i > 0; --i) {
      ActorPlan member;
      member.group = group_;
      member.bundle = static_cast<int>(between(-1, 0));
      member.placement = member.held = resources({{"CPU", 0.4}});
      actor_owner_->create_actor(member);
    }
    after(limit_us(), [this] {
      const head::Group* group = scenario_.head().core().view().groups().find(group_);
      if (!group || group->info.state() != proto::GROUP_CREATED)
        violation("a placement group waits for a CPU that tasks keep");
    });
  }

  static constexpr int64_t kLongestUs = 50'000, kRefillUs = 20'000;
  Scenario scenario_;
  int64_t nodes_ = 0, cpus_ = 0, end_us_ = 0;
  SimOwner* actor_owner_ = nullptr;
  ActorId actor_;
  GroupId group_;
};

}  // namespace

std::string run_shares(uint64_t seed) { return Shares(seed).run(); }

}  // namespace rt::sim
