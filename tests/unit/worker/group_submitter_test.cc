// The owner's half of scheduling for tasks in placement groups: where their demand goes, and what
// becomes of it when bundles move.
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "worker/core/lease_demand.h"
#include "worker/core/submitter.h"

namespace rt::worker {
namespace {

struct GroupSubmitRecorder : SubmitSink {
  using Levels = std::vector<std::pair<NodeKey, int>>;
  Levels demands;
  std::vector<int64_t> backlogs;
  std::vector<uint64_t> connecting, returned;
  std::vector<std::pair<uint64_t, Task*>> pushed;
  std::vector<std::pair<Task*, proto::ErrorValue>> failed;

  void send_demand(const NodeKey& node, const SchedulingClass&, int want, int64_t backlog,
                   const std::string&, uint64_t) override {
    demands.push_back({node, want});
    backlogs.push_back(backlog);
  }
  void connect_lease(const Lease& lease) override { connecting.push_back(lease.key); }
  void push_task(const Lease& lease, const Task& task) override {
    pushed.push_back({lease.key, const_cast<Task*>(&task)});
  }
  void take_back(const Lease&, int) override {}
  void return_lease(const Lease& lease, bool) override { returned.push_back(lease.id); }
  void ask_exit(const Lease&) override {}
  void fail_task(Task* task, const proto::ErrorValue& error) override {
    failed.push_back({task, error});
  }
  void attempt_failed(const Task&, const proto::ErrorValue&) override {}
  Levels take_demands() {
    backlogs.clear();
    return std::exchange(demands, {});
  }
};
using Levels = GroupSubmitRecorder::Levels;

class GroupSubmitterTest : public ::testing::Test {
 protected:
  GroupSubmitterTest() {
    view.set_here(here);
    view.watch(group);
  }
  ~GroupSubmitterTest() override { submitter.check_invariants(); }
  // A function in the bundle of the group, of 1 CPU.
  Template& function(int bundle_index) {
    auto& made = functions.emplace_back(std::make_unique<Template>());
    made->spec.set_name("f");
    (*made->spec.mutable_resources()->mutable_units())["CPU"] = 10000;
    made->spec.set_group_id(group.binary());
    made->spec.set_bundle_index(bundle_index);
    made->scheduling_class = submitter.scheduling_class(made->spec);
    return *made;
  }
  Task* submit(const Template& f, int retries = 3) {
    Task* task = tasks.take();
    task->id = make_task_id(++next_id, job_id_from_int(1));
    task->function = &f;
    task->retries_left = retries;
    submitter.submit(task);
    submitter.check_invariants();
    return task;
  }
  void tell(proto::GroupState state, const std::vector<NodeId>& nodes = {}, int cpus = 1) {
    proto::GroupInfo info;
    info.mutable_spec()->set_group_id(group.binary());
    info.set_version(++version);
    info.set_state(state);
    for (const NodeId& node : nodes) {
      auto* bundle = info.mutable_spec()->add_bundles();
      (*bundle->mutable_resources()->mutable_units())["CPU"] = 10000 * cpus;
      info.add_bundle_nodes(node.is_nil() ? "" : node.binary());
      info.add_bundle_epochs(node.is_nil() ? 0 : epoch);
    }
    if (view.update(info)) submitter.group_moved(group);
    submitter.check_invariants();
  }
  void grant(const Template& f, const NodeKey& node, uint64_t lease_id) {
    submitter.lease_granted(node, f.scheduling_class->id, lease_id, {}, 1, now);
    submitter.check_invariants();
  }
  // Every lease that is being connected is ready.
  void connect() {
    for (uint64_t key : std::exchange(sink.connecting, {})) {
      submitter.lease_ready(key, channel, now);
      submitter.check_invariants();
    }
  }
  void finish(size_t pushed) {
    auto [key, task] = sink.pushed.at(pushed);
    submitter.finished(key, task, 10, now);
    tasks.give_back(task);
    submitter.check_invariants();
  }

  static proto::ExitInfo removal() {
    proto::ExitInfo why;
    why.set_kind(proto::ExitInfo::GROUP_REMOVED);
    return why;
  }

  Rng rng{1};
  const NodeId here = NodeId::random(rng), x = NodeId::random(rng), y = NodeId::random(rng);
  const NodeId a = std::min(x, y), b = std::max(x, y);
  const NodeKey local = NodeKey::nil();
  int64_t epoch = 1;  // The head tells of bundles with this epoch.
  const GroupId group = make_group_id(job_id_from_int(1), rng);
  Settings settings;
  GroupSubmitRecorder sink;
  GroupView view;
  TaskPool tasks;
  struct : TaskChannel {
  } channel;  // Stands for the connections to workers.
  Submitter submitter{sink, settings, &view};
  std::vector<std::unique_ptr<Template>> functions;
  Now now{.steady_us = 1'000'000, .wall_us = 5'000'000'000};
  int64_t version = 0;
  uint64_t next_id = 0;
};

TEST_F(GroupSubmitterTest, EveryBundleHasAClassOfItsOwn) {
  proto::TaskTemplate plain = function(0).spec;
  plain.clear_group_id();
  plain.clear_bundle_index();
  SchedulingClass* outside = submitter.scheduling_class(plain);
  EXPECT_FALSE(outside->group);
  EXPECT_NE(function(0).scheduling_class, function(1).scheduling_class);
  EXPECT_NE(function(0).scheduling_class, outside);
  EXPECT_EQ(function(-1).scheduling_class, function(-1).scheduling_class);
  EXPECT_EQ(function(2).scheduling_class->group->bundle_index(), 2);
}

TEST_F(GroupSubmitterTest, TheDemandNamesTheBundleAndIsNeverRedirected) {
  Template& f = function(2);
  proto::LeaseDemand demand = lease_demand(local, *f.scheduling_class, 1, 1, "f");
  EXPECT_EQ(demand.group_id(), group.binary());
  EXPECT_EQ(demand.bundle_index(), 2);
  EXPECT_TRUE(demand.no_spill());
  submit(f);
  sink.demands.clear();
  submitter.redirected(NodeKey::nil(), f.scheduling_class->id, a, 1, 7, now);
  EXPECT_TRUE(sink.demands.empty());
}

TEST_F(GroupSubmitterTest, ATaskOfAnUnplacedGroupWaitsAtTheLocalNodeAndMovesToItsBundle) {
  Template& f = function(1);
  submit(f);
  EXPECT_EQ(sink.take_demands(), (Levels{{local, 1}}));
  tell(proto::GROUP_PENDING);
  EXPECT_TRUE(sink.demands.empty());
  tell(proto::GROUP_CREATED, {a, b});
  EXPECT_EQ(sink.take_demands(), (Levels{{b, 1}, {local, 0}}));
  grant(f, b, 7);
  connect();
  EXPECT_EQ(sink.pushed.size(), 1u);
  EXPECT_TRUE(sink.demands.empty());
  finish(0);
}

TEST_F(GroupSubmitterTest, ABundleOnTheOwnersNodeIsAskedForAtTheLocalNodeManager) {
  tell(proto::GROUP_CREATED, {here});
  Template& f = function(0);
  submit(f);
  EXPECT_EQ(sink.take_demands(), (Levels{{local, 1}}));
}

TEST_F(GroupSubmitterTest, AnyBundleIsAskedForEverywhereAndTheOthersHearOfTheGrant) {
  tell(proto::GROUP_CREATED, {a, b});
  Template& f = function(-1);
  submit(f);
  EXPECT_EQ(sink.backlogs, (std::vector<int64_t>{1, 0}));  // Lists count the task once.
  EXPECT_EQ(sink.take_demands(), (Levels{{a, 1}, {b, 1}}));
  grant(f, a, 7);
  EXPECT_EQ(sink.take_demands(), (Levels{{b, 0}}));
  grant(f, b, 8);  // It was on its way.
  EXPECT_EQ(sink.returned, std::vector<uint64_t>{8});
  connect();
  EXPECT_EQ(sink.pushed.size(), 1u);
  EXPECT_TRUE(sink.demands.empty());
  finish(0);
}

TEST_F(GroupSubmitterTest, NoNodeIsAskedForMoreThanItsBundlesHold) {
  tell(proto::GROUP_CREATED, {a, b, b});
  Template& f = function(-1);
  f.average_us = 1'000'000;
  for (int i = 0; i < 8; ++i) submit(f);
  grant(f, a, 1);
  grant(f, b, 2);
  grant(f, b, 3);
  EXPECT_TRUE(sink.returned.empty());
  sink.demands.clear();
  connect();
  EXPECT_EQ(sink.pushed.size(), 3u);
  for (const auto& [node, want] : sink.demands) EXPECT_LE(want, node == a ? 1 : 2);
}

TEST_F(GroupSubmitterTest, WhenABundleMovesTheDemandFollowsAndAnOldGrantIsStillUsed) {
  tell(proto::GROUP_CREATED, {a});
  Template& f = function(0);
  submit(f);
  EXPECT_EQ(sink.take_demands(), (Levels{{a, 1}}));
  tell(proto::GROUP_RESCHEDULING, {NodeId::nil()});
  EXPECT_EQ(sink.take_demands(), (Levels{{local, 1}, {a, 0}}));
  tell(proto::GROUP_CREATED, {b});
  EXPECT_EQ(sink.take_demands(), (Levels{{b, 1}, {local, 0}}));
  grant(f, a, 7);
  connect();
  EXPECT_EQ(sink.pushed.size(), 1u);
  EXPECT_EQ(sink.take_demands(), (Levels{{b, 0}}));
  finish(0);
}

TEST_F(GroupSubmitterTest, ARetryFollowsTheView) {
  tell(proto::GROUP_CREATED, {a});
  Template& f = function(0);
  submit(f, 1);
  grant(f, a, 7);
  connect();
  sink.demands.clear();
  tell(proto::GROUP_CREATED, {b});
  EXPECT_TRUE(sink.demands.empty());
  uint64_t key = sink.pushed.at(0).first;
  submitter.lease_broken(key);
  submitter.worker_exit(key, {});
  EXPECT_EQ(sink.take_demands(), (Levels{{b, 1}}));
}

TEST_F(GroupSubmitterTest, AfterTheRemovalWhatDoesNotRunFails) {
  auto code = [&](size_t i) { return static_cast<Code>(sink.failed.at(i).second.code()); };
  tell(proto::GROUP_CREATED, {a});
  Template& f = function(0);
  Task* running = submit(f, 0);
  grant(f, a, 7);
  connect();
  Task* queued = submit(f, 1);
  sink.demands.clear();
  tell(proto::GROUP_REMOVED);
  EXPECT_EQ(sink.take_demands(), (Levels{{a, 0}}));
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, queued);
  EXPECT_EQ(code(0), Code::kUnschedulable);
  EXPECT_EQ(sink.failed[0].second.exit().kind(), proto::ExitInfo::GROUP_REMOVED);
  uint64_t key = sink.pushed.at(0).first;
  submitter.lease_broken(key);
  submitter.worker_exit(key, removal());
  ASSERT_EQ(sink.failed.size(), 2u);
  EXPECT_EQ(sink.failed[1].first, running);
  EXPECT_EQ(code(1), Code::kWorkerCrashed);
  EXPECT_NE(sink.failed[1].second.message().find("its placement group was removed"),
            std::string::npos);
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(GroupSubmitterTest, WhatIsSubmittedOrRetriedAfterTheRemovalWaitsWhereItIsSeen) {
  tell(proto::GROUP_CREATED, {a});
  Template& f = function(0);
  submit(f, 3);
  grant(f, a, 7);
  connect();
  tell(proto::GROUP_REMOVED);
  sink.demands.clear();
  uint64_t key = sink.pushed.at(0).first;
  submitter.lease_broken(key);
  submitter.worker_exit(key, removal());
  EXPECT_EQ(sink.take_demands(), (Levels{{local, 1}}));
  submit(f);
  EXPECT_TRUE(sink.failed.empty());
  EXPECT_EQ(submitter.pending(), 2);
}

TEST_F(GroupSubmitterTest, ATaskThatAWorkerReturnsUnstartedAfterTheRemovalFails) {
  tell(proto::GROUP_CREATED, {a});
  Template& f = function(0);
  f.average_us = 10;
  submit(f, 3);
  Task* behind = submit(f, 3);
  grant(f, a, 7);
  connect();
  ASSERT_EQ(sink.pushed.size(), 2u);
  tell(proto::GROUP_REMOVED);
  EXPECT_TRUE(sink.failed.empty());
  submitter.task_returned(sink.pushed.at(1).first, behind, now);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, behind);
  EXPECT_EQ(submitter.pending(), 1);
}

class RemovalNews : public GroupSubmitterTest, public ::testing::WithParamInterface<bool> {};

TEST_P(RemovalNews, MayComeBeforeOrAfterTheEndOfTheWorker) {
  tell(proto::GROUP_CREATED, {a});
  Template& f = function(0);
  f.average_us = 10;
  Task* running = submit(f, 3);
  Task* behind = submit(f, 3);
  grant(f, a, 7);
  connect();
  ASSERT_EQ(sink.pushed.size(), 2u);
  Task* queued = submit(f, 0);
  uint64_t key = sink.pushed.at(0).first;
  if (GetParam()) tell(proto::GROUP_REMOVED);
  submitter.lease_broken(key);
  submitter.worker_exit(key, removal());
  if (!GetParam()) tell(proto::GROUP_REMOVED);
  ASSERT_EQ(sink.failed.size(), 2u);
  for (auto& [task, error] : sink.failed) {
    EXPECT_TRUE(task == behind || task == queued);
    EXPECT_EQ(error.code(), static_cast<int>(Code::kUnschedulable));
  }
  EXPECT_EQ(f.scheduling_class->queue, std::deque<Task*>{running});
}

INSTANTIATE_TEST_SUITE_P(BothOrders, RemovalNews, ::testing::Bool());

TEST_F(GroupSubmitterTest, AGroupThatTurnsUpAfterAllTakesTheTasksThatWait) {
  Template& f = function(0);
  submit(f);
  EXPECT_EQ(sink.take_demands(), (Levels{{local, 1}}));
  view.lost(group, "the head does not know it");
  submitter.group_moved(group);
  EXPECT_TRUE(sink.demands.empty());
  EXPECT_TRUE(sink.failed.empty());
  tell(proto::GROUP_CREATED, {a});
  EXPECT_EQ(sink.take_demands(), (Levels{{a, 1}, {local, 0}}));
}

TEST_F(GroupSubmitterTest, WhatIsSubmittedToAGroupThatWasRemovedLongAgoStaysPending) {
  Template& f = function(0);
  submit(f);
  tell(proto::GROUP_REMOVED);  // The first that this process hears of the group.
  EXPECT_TRUE(sink.failed.empty());
  EXPECT_EQ(submitter.pending(), 1);
}

TEST_F(GroupSubmitterTest, TasksOfAnOwnGroupFailEvenIfItsRemovalIsTheFirstNewsOfIt) {
  view.watch_own(group);
  Template& f = function(0);
  submit(f);
  tell(proto::GROUP_REMOVED);
  EXPECT_EQ(sink.failed.size(), 1u);
}

TEST_F(GroupSubmitterTest, TheNodeHearsHowManyTasksWaitForABundleThatHoldsFew) {
  tell(proto::GROUP_CREATED, {a});
  Template& f = function(0);
  for (int i = 0; i < 1000; ++i) submit(f);
  for (const auto& [node, want] : sink.demands) EXPECT_EQ(want, 1);
  EXPECT_LT(sink.demands.size(), 12u);
  EXPECT_GT(sink.backlogs.back(), 500);
}

TEST_F(GroupSubmitterTest, TheOwnNodeHearsWhenItsBundleIsForUse) {
  Template& f = function(0);
  submit(f);
  EXPECT_EQ(sink.take_demands(), (Levels{{local, 1}}));
  EXPECT_EQ(lease_demand(local, *f.scheduling_class, 1, 1, "f").group_epoch(), 0);
  tell(proto::GROUP_PREPARED);
  EXPECT_TRUE(sink.demands.empty());
  tell(proto::GROUP_CREATED, {here});
  EXPECT_EQ(sink.take_demands(), (Levels{{local, 1}}));
  EXPECT_EQ(lease_demand(local, *f.scheduling_class, 1, 1, "f").group_epoch(), 1);
}

TEST_F(GroupSubmitterTest, ANodeHearsThatALaterBundleThereIsForUse) {
  tell(proto::GROUP_CREATED, {here, a});
  Template& f = function(-1);
  submit(f);
  submit(f);
  (void)sink.take_demands();
  EXPECT_EQ(lease_demand(a, *f.scheduling_class, 1, 1, "f").group_epoch(), 1);
  tell(proto::GROUP_RESCHEDULING, {NodeId::nil(), a});
  EXPECT_EQ(lease_demand(local, *f.scheduling_class, 0, 0, "f").group_epoch(), 0);
  (void)sink.take_demands();
  epoch = 2;
  tell(proto::GROUP_CREATED, {a, a});
  const Levels told = sink.take_demands();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told.front().first, a);
  EXPECT_EQ(lease_demand(a, *f.scheduling_class, 1, 1, "f").group_epoch(), 2);
}

TEST_F(GroupSubmitterTest, ANodeWhoseConnectionBreaksIsAskedAgain) {
  tell(proto::GROUP_CREATED, {a, b});
  Template& f = function(-1);
  submit(f);
  sink.demands.clear();
  submitter.node_gone(a);
  EXPECT_EQ(sink.take_demands(), (Levels{{a, 1}}));
  submitter.node_gone(NodeId::random(rng));
  EXPECT_TRUE(sink.demands.empty());
}

TEST_F(GroupSubmitterTest, AClassIsFreedWithItsLastUserAndLateGrantsGoBack) {
  tell(proto::GROUP_CREATED, {a});
  Template& f = function(0);
  Template& same = function(0);
  submit(f);
  grant(f, a, 7);
  connect();
  finish(0);
  uint64_t old = f.scheduling_class->id;
  submitter.release(same.scheduling_class);
  EXPECT_TRUE(sink.returned.empty());
  submitter.release(f.scheduling_class);
  EXPECT_EQ(sink.returned, std::vector<uint64_t>{7});
  EXPECT_FALSE(submitter.has_leases());
  submitter.lease_granted(a, old, 8, {}, 1, now);
  EXPECT_EQ(sink.returned, (std::vector<uint64_t>{7, 8}));
  EXPECT_TRUE(sink.connecting.empty());
  tell(proto::GROUP_CREATED, {b});  // Nobody is told.
  sink.demands.clear();
  Template& again = function(0);
  EXPECT_NE(again.scheduling_class->id, old);
  submit(again);
  EXPECT_EQ(sink.take_demands(), (Levels{{b, 1}}));
}

TEST_F(GroupSubmitterTest, ASmallDecreaseUnderLoadIsNotWorthAMessage) {
  GroupDemand demand(group, -1);
  demand.move_to({{a}, {b, 4}}, false);
  EXPECT_EQ(demand.levels(100, 100).size(), 2u);
  EXPECT_TRUE(demand.levels(99, 99).empty());
  std::vector<GroupDemand::Level> half = demand.levels(50, 90);
  ASSERT_EQ(half.size(), 1u);
  EXPECT_EQ(half[0].node, a);
  EXPECT_EQ(half[0].want, 50);
  EXPECT_EQ(demand.levels(0, 0).size(), 2u);
  EXPECT_FALSE(demand.wants());
}

}  // namespace
}  // namespace rt::worker
