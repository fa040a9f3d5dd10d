// Simulated scenarios. Each runs with a few fixed seeds; SIM_SEED=N runs all with that seed only.
#include <gtest/gtest.h>

#include "tests/sim/churn.h"
#include "tests/sim/copies.h"
#include "tests/sim/graphs.h"
#include "tests/sim/group_workload.h"
#include "tests/sim/links.h"
#include "tests/sim/owners.h"
#include "tests/sim/seeds.h"
#include "tests/sim/shares.h"
#include "tests/sim/workload.h"

namespace rt::sim {
namespace {

TaskPlan task(int64_t duration_us, double cpus = 1, int max_retries = 3) {
  TaskPlan plan;
  plan.duration_us = duration_us;
  if (cpus > 0) plan.resources = resources({{"CPU", cpus}});
  plan.max_retries = max_retries;
  return plan;
}

ActorPlan actor(int64_t max_restarts, double cpus = 1) {
  ActorPlan plan;
  plan.placement = resources({{"CPU", cpus}});
  plan.held = plan.placement;
  plan.max_restarts = max_restarts;
  return plan;
}

TaskPlan call(int64_t duration_us, int max_retries) { return task(duration_us, 0, max_retries); }

TEST(Sim, AQuietClusterRunsEverythingOnce) {
  FOR_SEEDS(3) {
    Scenario s({.seed = seed, .nodes = 8});
    for (int i = 0; i < 4; ++i) s.add_owner();
    s.wait_ready();
    for (SimOwner* owner : s.owners()) {
      for (int i = 0; i < 200; ++i) owner->submit(task(s.world().between(10, 10'000)));
    }
    s.finish();
    EXPECT_EQ(s.ledger().totals().succeeded, 800);
    EXPECT_EQ(s.ledger().totals().executions, 800);
    EXPECT_EQ(s.ledger().totals().failed, 0);
  }
}

TEST(Sim, NoTaskWaitsBehindALongOneWhileAnotherCpuIsFree) {
  FOR_SEEDS(4) {
    Scenario s({.seed = seed, .nodes = 1, .node_resources = {{"CPU", 2}}});
    SimOwner& owner = s.add_owner();
    s.wait_ready();
    auto ended = [&] { return s.ledger().totals().succeeded; };
    for (int i = 0; i < 100; ++i) owner.submit(task(20));
    s.run_until("the function is measured", [&] { return ended() == 100; });
    owner.submit(task(30 * kSecond));
    for (int i = 0; i < 3000; ++i) owner.submit(task(20));
    s.run_until("the short ones end", [&] { return ended() == 3100; }, kSecond);
    for (int i = 0; i < 3; ++i) owner.submit(task(20));
    s.run_until("so do later ones", [&] { return ended() == 3103; }, kSecond);
    s.finish();
  }
}

TEST(Sim, ACallToAnActorOnALostHostEndsOnceTheHeadKnowsOfTheLoss) {
  FOR_SEEDS(8) {
    Scenario s({.seed = seed,
                .nodes = 1,
                .network = {.notice_lost_host_max_us = 600 * kSecond},
                .settings = [](Settings& settings) { settings.node_timeout_ms = 2000; }});
    SimNode& lost = s.add_node({{"CPU", 1}, {"there", 1}});
    SimOwner& owner = s.add_owner(*s.nodes().front());
    s.wait_ready();
    ActorPlan plan = actor(0);
    plan.placement = plan.held = resources({{"there", 1}});
    const ActorId id = owner.create_actor(plan);
    owner.call(id, call(3600 * kSecond, 0));
    s.run_until("the call runs", [&] { return s.ledger().running() == 1; });
    s.ledger().process_fault();
    lost.crash();
    s.run_until("the call fails", [&] { return s.ledger().totals().failed == 1; }, 6 * kSecond);
  }
}

TEST(Sim, OneSeedIsOneHistory) {
  auto run = [](uint64_t seed) {
    Scenario s({.seed = seed, .nodes = 12});
    for (int i = 0; i < 4; ++i) s.add_owner();
    s.wait_ready();
    submit_random(s, 400, kSecond);
    random_actors(s, 4, s.now_us() + kSecond);
    s.chaos({.worker_kills = 10,
             .node_kills = 1,
             .connection_breaks = 5,
             .head_crashes = 0.5,
             .partitions = 0.5},
            2 * kSecond);
    s.finish();
    return std::pair(s.hash(), s.world().clock.events());
  };
  auto first = run(42);
  EXPECT_EQ(first, run(42));
  EXPECT_NE(first, run(43));
}

TEST(Sim, TwoHundredNodesTwentyDriversFiveThousandTasksUnderKills) {
  FOR_SEEDS(2) {
    Scenario s({.seed = seed, .nodes = 200});
    for (int i = 0; i < 20; ++i) s.add_owner();
    s.wait_ready();
    submit_random(s, 5000, kSecond);
    s.chaos({.worker_kills = 30, .node_kills = 5}, 1500 * kMs);
    s.finish();
    EXPECT_EQ(s.ledger().totals().submitted, 5000);
    EXPECT_EQ(s.ledger().totals().abandoned, 0);
    EXPECT_GT(s.ledger().totals().succeeded, 4000);
  }
}

TEST(Sim, TasksWithRetriesSurviveWorkerKills) {
  FOR_SEEDS(3) {
    Scenario s({.seed = seed, .nodes = 6});
    for (int i = 0; i < 3; ++i) s.add_owner();
    s.wait_ready();
    for (SimOwner* owner : s.owners()) {
      for (int i = 0; i < 300; ++i) owner->submit(task(s.world().between(100, 30'000), 1, -1));
    }
    s.chaos({.worker_kills = 50}, 2 * kSecond);
    s.finish();
    EXPECT_EQ(s.ledger().totals().succeeded, 900);
    EXPECT_GT(s.ledger().totals().executions, 900);
  }
}

TEST(Sim, ACrashingTaskDoesNotTakeItsNeighboursAlong) {
  FOR_SEEDS(3) {
    Scenario s({.seed = seed, .nodes = 2});
    SimOwner& owner = s.add_owner();
    s.wait_ready();
    for (int i = 0; i < 400; ++i) {
      TaskPlan plan = task(s.world().between(5, 200), 1, 2);
      if (i % 40 == 7) plan.crashes = 100;
      owner.submit(plan);
    }
    s.finish();
    EXPECT_EQ(s.ledger().totals().failed, 10);
    EXPECT_EQ(s.ledger().totals().succeeded, 390);
    EXPECT_EQ(s.ledger().failures_by_code(),
              (std::map<std::string, int>{{std::string(code_name(Code::kWorkerCrashed)), 10}}));
  }
}

TEST(Sim, TheHeadRestartsUnderLoad) {
  FOR_SEEDS(4) {
    Scenario s({.seed = seed, .nodes = 20});
    for (int i = 0; i < 5; ++i) s.add_owner();
    s.wait_ready();
    SimOwner& owner = *s.owners()[0];
    ActorId counter = owner.create_actor(actor(0));
    for (int i = 0; i < 50; ++i) owner.call(counter, call(2000, 0));
    for (SimOwner* o : s.owners()) {
      for (int i = 0; i < 200; ++i) o->submit(task(s.world().between(500, 20'000)));
    }
    for (int i = 0; i < 3; ++i) {
      s.run_for(s.world().between(1, 300 * kMs));
      s.crash_head();
      s.run_for(s.world().between(1, 500 * kMs));
      s.start_head();
    }
    s.finish();
    // Running programs do not notice: no task fails, and the actor lives on.
    EXPECT_EQ(s.ledger().totals().succeeded, 1050);
    EXPECT_EQ(s.ledger().totals().executions, 1050);
    EXPECT_EQ(s.ledger().actor(counter).starts.size(), 1u);
  }
}

TEST(Sim, WhoeverWaitsForALostHeadIsToldThatItStaysAway) {
  FOR_SEEDS(4) {
    Scenario s({.seed = seed, .nodes = 2});
    s.world().settings.head_reconnect_timeout_ms = 3000;
    SimOwner &owner = s.add_owner(), &caller = s.add_owner();
    s.wait_ready();
    const ActorId counter = owner.create_actor(actor(0));
    owner.call(counter, call(2000, 0));
    s.run_until("the call ends", [&] { return owner.pending() == 0; });
    s.crash_head();
    s.run_for(2 * kSecond);
    owner.call(counter, call(2000, 0));
    caller.call(counter, call(2000, 0));
    s.run_for(kSecond / 2);
    EXPECT_EQ(owner.pending(), 0) << "what a process knows goes on without a head";
    EXPECT_EQ(caller.pending(), 1);
    s.ledger().head_given_up();
    s.run_until("all nodes give up", [&] { return s.nodes().empty(); }, 5 * kSecond);
    EXPECT_EQ(s.ledger().totals().failed, 1);
  }
}

TEST(Sim, WhatTheDiskRefusesIsWrittenLater) {
  FOR_SEEDS(2) {
    Scenario s({.seed = seed, .nodes = 4});
    SimOwner& owner = s.add_owner();
    s.wait_ready();
    ActorId a = owner.create_actor(actor(-1));
    s.run_until("the actor lives", [&] { return !s.ledger().actor(a).living.empty(); });
    s.disk().full = true;
    owner.kill_actor(a, false);
    s.run_until("it is restarted", [&] {
      return s.ledger().actor(a).deaths == 1 && !s.ledger().actor(a).living.empty();
    });
    s.disk().full = false;
    s.run_for(3 * kSecond);
    s.restart_head(200 * kMs);
    s.run_for(kSecond);
    owner.call(a, call(100, 0));
    s.finish();
    EXPECT_EQ(s.ledger().totals().succeeded, 1);
    EXPECT_EQ(s.ledger().actor(a).starts.size(), 2u);
  }
}

TEST(Sim, APartitionHeals) {
  FOR_SEEDS(4) {
    Scenario s({.seed = seed, .nodes = 20});
    for (int i = 0; i < 5; ++i) s.add_owner(*s.nodes()[i]);
    s.wait_ready();
    for (SimOwner* owner : s.owners()) {
      for (int i = 0; i < 200; ++i) owner->submit(task(s.world().between(500, 30'000), 1, -1));
    }
    s.run_for(50 * kMs);
    auto nodes = s.nodes();
    // There are driver nodes on both sides. With an even seed the partition is shorter than the
    // time after which the head declares a silent node dead, with an odd seed it is longer.
    bool lasting = seed % 2;
    s.partition({nodes.begin() + 3, nodes.begin() + 12}, lasting ? 0.5 : 0);
    s.run_for(lasting ? 14 * kSecond : kSecond);
    s.heal();
    s.finish();
    EXPECT_EQ(s.nodes().size(), lasting ? 11u : 20u);
    if (!lasting) {
      EXPECT_EQ(s.ledger().totals().succeeded, 1000);
    }
  }
}

TEST(Sim, ANodeWhoseConnectionBreaksInAShortPartitionLosesNothing) {
  FOR_SEEDS(6) {
    Scenario s({.seed = seed, .nodes = 6});
    SimOwner& owner = s.add_owner(*s.nodes()[0]);
    s.wait_ready();
    std::vector<ActorId> actors;
    for (int i = 0; i < 6; ++i) actors.push_back(owner.create_actor(actor(0)));
    s.run_until("all live", [&] {
      return std::all_of(actors.begin(), actors.end(),
                         [&](const ActorId& a) { return !s.ledger().actor(a).living.empty(); });
    });
    auto nodes = s.nodes();
    s.partition({nodes.begin() + 3, nodes.end()}, 1);
    s.run_for(s.world().between(2 * kSecond, 4 * kSecond));
    s.heal();
    for (const ActorId& a : actors) owner.call(a, call(1000, -1));
    s.finish();
    EXPECT_EQ(s.nodes().size(), 6u);
    EXPECT_EQ(s.ledger().totals().succeeded, 6);
    for (const ActorId& a : actors) EXPECT_EQ(s.ledger().actor(a).starts.size(), 1u);
  }
}

TEST(Sim, ActorsRestartAsOftenAsAllowed) {
  FOR_SEEDS(4) {
    Scenario s({.seed = seed, .nodes = 5});
    SimOwner& owner = s.add_owner();
    s.wait_ready();
    ActorId a = owner.create_actor(actor(2));
    for (int life = 1; life <= 3; ++life) {
      s.run_until("it lives", [&] {
        return !s.ledger().actor(a).living.empty() &&
               owner.actor_state(a) == worker::ActorLink::State::kAlive;
      });
      for (int i = 0; i < 20; ++i) owner.call(a, call(1000, -1));
      s.run_for(s.world().between(0, 15 * kMs));
      for (SimNode* node : s.nodes()) {
        for (SimWorker* worker : node->workers()) {
          if (worker->is_actor()) s.kill_worker(*worker);
        }
      }
      s.run_until("its death is known",
                  [&] { return owner.actor_state(a) != worker::ActorLink::State::kAlive; });
    }
    s.finish();
    EXPECT_EQ(s.ledger().actor(a).starts.size(), 3u);
    ASSERT_TRUE(owner.dead_actors().contains(a));
    EXPECT_EQ(owner.dead_actors().at(a).kind(), proto::ExitInfo::SIGNALED);
  }
}

TEST(Sim, AnActorMovesWhenItsNodeDies) {
  FOR_SEEDS(4) {
    Scenario s({.seed = seed, .nodes = 5});
    SimOwner& owner = s.add_owner(*s.nodes()[0]);
    s.wait_ready();
    ActorPlan plan = actor(-1, 3);
    std::vector<ActorId> actors;
    for (int i = 0; i < 3; ++i) actors.push_back(owner.create_actor(plan));
    auto all_live = [&] {
      return std::all_of(actors.begin(), actors.end(),
                         [&](const ActorId& a) { return !s.ledger().actor(a).living.empty(); });
    };
    s.run_until("all live", all_live);
    s.kill_random_node(true);
    for (const ActorId& a : actors) owner.call(a, call(500, -1));
    s.run_until("all live again", all_live);
    s.finish();
    EXPECT_EQ(s.ledger().totals().succeeded, 3);
  }
}

TEST(Sim, AHeadThatForgotAnActorsLastStartDoesNotDisturbItsCallers) {
  FOR_SEEDS(10) {
    Scenario s({.seed = seed, .nodes = 3});
    SimOwner& owner = s.add_owner();
    s.wait_ready();
    ActorId a = owner.create_actor(actor(1));
    auto lives = [&] { return owner.actor_state(a) == worker::ActorLink::State::kAlive; };
    s.run_until("it lives", lives);
    for (SimNode* node : s.nodes()) {
      for (SimWorker* worker : node->workers()) {
        if (worker->is_actor()) s.kill_worker(*worker);
      }
    }
    s.run_until("its death is known", [&] { return !lives(); });
    s.run_until("it lives again", lives);
    // The restart has been announced to the callers, but may not be on the head's disk yet.
    for (int i = 0; i < 5; ++i) owner.call(a, call(100 * kMs, 0));
    s.restart_head(50 * kMs);
    s.finish();
    EXPECT_EQ(s.ledger().totals().succeeded, 5);
  }
}

TEST(Sim, AFailingConstructorIsTheErrorOfEveryCall) {
  FOR_SEEDS(2) {
    Scenario s({.seed = seed, .nodes = 2});
    SimOwner& owner = s.add_owner();
    s.wait_ready();
    ActorPlan plan = actor(5);
    plan.constructor_raises = true;
    ActorId a = owner.create_actor(plan);
    for (int i = 0; i < 10; ++i) owner.call(a, call(100, 3));
    s.finish();
    EXPECT_EQ(owner.dead_actors().at(a).kind(), proto::ExitInfo::INIT_FAILED);
    EXPECT_EQ(s.ledger().totals().failed, 10);
    EXPECT_EQ(s.ledger().actor(a).starts.size(), 1u);
  }
}

TEST(Sim, AnInfeasibleTaskRunsWhenANodeJoins) {
  FOR_SEEDS(3) {
    Scenario s({.seed = seed, .nodes = 3});
    SimOwner& owner = s.add_owner();
    s.wait_ready();
    TaskPlan plan = task(1000);
    plan.resources = resources({{"CPU", 1}, {"accelerator", 1}});
    for (int i = 0; i < 5; ++i) owner.submit(plan);
    ActorPlan big = actor(0, 16);
    ActorId a = owner.create_actor(big);
    owner.call(a, call(100, 0));
    s.run_for(5 * kSecond);
    EXPECT_EQ(s.ledger().totals().executions, 0);
    ASSERT_GE(owner.notices().size(), 2u);  // one for the tasks, one for the actor
    s.add_node({{"CPU", 20}, {"accelerator", 2}});
    s.finish();
    EXPECT_EQ(s.ledger().totals().succeeded, 6);
  }
}

TEST(Sim, TwoDriversShareANode) {
  FOR_SEEDS(3) {
    Scenario s({.seed = seed, .nodes = 1});
    SimOwner& greedy = s.add_owner();
    SimOwner& late = s.add_owner();
    s.wait_ready();
    for (int i = 0; i < 4000; ++i) greedy.submit(task(5000));
    s.run_for(500 * kMs);
    for (int i = 0; i < 4000; ++i) late.submit(task(5000));
    int64_t before_greedy = greedy.succeeded();
    s.run_for(2 * kSecond);
    double share = static_cast<double>(late.succeeded()) /
                   static_cast<double>(late.succeeded() + greedy.succeeded() - before_greedy);
    EXPECT_GT(share, 0.35);
    EXPECT_LT(share, 0.65);
    s.finish();
  }
}

TEST(Sim, NestedWaitsDoNotDeadlock) {
  FOR_SEEDS(3) {
    Scenario s({.seed = seed, .nodes = 2});
    SimOwner& parents = s.add_owner();
    SimOwner& children = s.add_owner();
    s.wait_ready();
    // Every CPU belongs to a task that waits in get(); the children run on the lent CPUs.
    for (int i = 0; i < 16; ++i) {
      TaskPlan plan = task(2000);
      plan.blocked_us = 3 * kSecond;
      parents.submit(plan);
    }
    s.run_for(500 * kMs);
    for (int i = 0; i < 50; ++i) children.submit(task(1000));
    s.run_until("the children end", [&] { return children.pending() == 0; }, 2 * kSecond);
    EXPECT_GT(parents.pending(), 0);
    s.finish();
  }
}

// Each task waits for the next one, many more deep than max_workers.
TEST(Sim, RecursionIsDeeperThanMaxWorkers) {
  FOR_SEEDS(4) {
    Scenario s({.seed = seed,
                .nodes = 1,
                .node_resources = {{"CPU", 2}},
                .settings = [](Settings& settings) { settings.max_workers = 8; }});
    SimOwner& owner = s.add_owner();
    s.wait_ready();
    TaskPlan plan = task(1000);
    for (int depth = 0; depth < 60; ++depth) {
      TaskPlan parent = task(1000);
      parent.child = std::make_shared<TaskPlan>(std::move(plan));
      plan = std::move(parent);
    }
    for (int i = 0; i < 3; ++i) owner.submit(plan);
    s.finish();
    EXPECT_EQ(s.ledger().totals().succeeded, 3 * 61);
  }
}

// Parents hold R or one of two GPUs while they wait for their children, in get() or in a loop of
// their own. Others need more than is free then, wait until they are starved, and have everything
// that is free set aside for them. Nevertheless everything ends, because children of holders of R
// need at most a GPU, and children of holders of a GPU only a CPU.
TEST(Sim, TasksThatWaitForTheirChildrenEndBesideStarvedOnes) {
  FOR_SEEDS(30) {
    Scenario s({.seed = seed,
                .nodes = 1 + static_cast<int>(seed % 2),
                .node_resources = {{"CPU", 4}, {"R", 2}, {"GPU", 2}}});
    SimOwner& parents = s.add_owner();
    SimOwner& others = s.add_owner();
    s.wait_ready();
    auto chance = [&](double p) { return s.world().rng.chance(p); };
    for (int i = 0; i < 40; ++i) {
      TaskPlan child = task(s.world().between(100, 300 * kMs));
      const bool holds_r = chance(0.5);
      if (holds_r && chance(0.3)) child.resources = resources({{"CPU", 1}, {"GPU", 0.5}});
      TaskPlan parent = task(s.world().between(100, 1500 * kMs));
      parent.function = 1;
      parent.resources = holds_r ? resources({{"CPU", 1}, {"R", 1}})
                                 : resources({{"CPU", 1}, {"GPU", chance(0.5) ? 0.4 : 1}});
      parent.child = std::make_shared<TaskPlan>(child);
      parent.polls = holds_r && chance(0.4);
      parents.submit(parent);
      TaskPlan large = task(s.world().between(100, 500 * kMs));
      large.function = 2;
      large.resources =
          chance(0.5) ? resources({{"CPU", 4}, {"R", 2}}) : resources({{"CPU", 3}, {"GPU", 2}});
      others.submit(large);
      others.submit(task(s.world().between(100, 200 * kMs)));
    }
    s.finish(600 * kSecond);
  }
}

// A stream of tasks that need one CPU does not keep out those that need all of them, whatever the
// tasks' durations.
TEST(Sim, LargeTasksRunInAStreamOfSmallOnes) {
  FOR_SEEDS(6) {
    Scenario s({.seed = seed, .nodes = 1});
    SimOwner& stream = s.add_owner();
    SimOwner& large = s.add_owner();
    s.wait_ready();
    const int64_t duration = s.world().between(5 * kMs, 3 * kSecond);
    s.at_random_times(6.0 * kSecond / static_cast<double>(duration), s.now_us() + 300 * kSecond,
                      "small task", [&] { stream.submit(task(duration)); });
    s.run_for(kSecond);
    large.submit(task(10 * kMs, 4));
    s.run_until("the large task ends", [&] { return large.pending() == 0; }, 60 * kSecond);
    EXPECT_GT(stream.pending(), 0);
    s.kill_owner(stream);
    s.finish();
  }
}

TEST(Sim, WhatADriverLeavesBehindIsCleanedUp) {
  FOR_SEEDS(3) {
    Scenario s({.seed = seed, .nodes = 6});
    SimOwner& doomed = s.add_owner();
    SimOwner& other = s.add_owner();
    s.wait_ready();
    ActorId mortal = doomed.create_actor(actor(-1));
    ActorPlan plan = actor(0);
    plan.detached = true;
    plan.name = "stays";
    ActorId detached = doomed.create_actor(plan);
    for (int i = 0; i < 100; ++i) doomed.submit(task(100 * kMs));
    s.run_until("both live", [&] {
      return !s.ledger().actor(mortal).living.empty() && !s.ledger().actor(detached).living.empty();
    });
    s.kill_owner(doomed);
    for (int i = 0; i < 100; ++i) other.submit(task(1000));
    s.finish();
    EXPECT_EQ(other.succeeded(), 100);
    EXPECT_TRUE(s.ledger().actor(mortal).living.empty());
    EXPECT_EQ(s.ledger().actor(detached).living.size(), 1u);
  }
}

TEST(Sim, ProcessesThatCannotBeStartedAreReported) {
  FOR_SEEDS(2) {
    Scenario s({.seed = seed, .nodes = 1});
    SimOwner& owner = s.add_owner();
    s.fail_spawns(1);
    s.wait_ready();
    owner.submit(task(1000));
    s.finish();
    EXPECT_EQ(s.ledger().totals().failed, 1);
    s.fail_spawns(0);
    s.run_for(30 * kSecond);
    owner.submit(task(1000));
    s.finish();
    EXPECT_EQ(s.ledger().totals().succeeded, 1);
  }
}

TEST(Sim, GraphsOfTasksWhoseArgumentsNearlyFillTheStores) {
  FOR_SEEDS(40) { run_graphs(seed); }
}

TEST(Sim, PlacementGroupsThatNearlyFillTheNodes) {
  FOR_SEEDS(80) { run_groups(seed); }
}

TEST(Sim, ClustersThatLoseParts) {
  FOR_SEEDS(40) { run_churn(seed); }
}

TEST(Sim, ClustersWhoseLinksBreak) {
  FOR_SEEDS(60) { run_links(seed); }
}

TEST(Sim, OwnersThatRetryCancelAndSeekArguments) {
  FOR_SEEDS(40) { run_owners(seed); }
}

TEST(Sim, OwnersThatShareTooFewWorkers) {
  FOR_SEEDS(20) { run_shares(seed); }
}

TEST(Sim, CopiesFromStoresThatFail) {
  FOR_SEEDS(100) { run_copies(seed); }
}

TEST(Sim, EverythingAtOnce) {
  FOR_SEEDS(10) {
    Scenario s({.seed = seed, .nodes = 20, .node_resources = {{"CPU", 2}}});
    for (int i = 0; i < 6; ++i) s.add_owner();
    s.wait_ready();
    submit_random(s, 1000, 2 * kSecond);
    random_actors(s, 8, s.now_us() + 2 * kSecond);
    s.chaos({.worker_kills = 10,
             .node_kills = 0.5,
             .connection_breaks = 20,
             .head_crashes = 0.5,
             .partitions = 0.3,
             .driver_kills = 0.3,
             .spare_driver_nodes = false},
            3 * kSecond);
    s.finish();
  }
}

}  // namespace
}  // namespace rt::sim
