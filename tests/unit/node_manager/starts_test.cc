// The starts of worker processes, their bounds, the reports about the bounds, and the ticks that
// end their pauses.
#include "core_fixture.h"

namespace rt::node {
namespace {

class StartsTest : public NodeCoreTest {
 protected:
  // The demands that the head would hear of, one per line.
  std::string reported() const {
    proto::ResourceReport report;
    core->view().fill_report(&report);
    std::string text;
    for (const auto& demand : report.demands())
      text += fmt::format("{} of {}: {}\n", demand.count(), demand.what(), demand.waits_for());
    return text;
  }
  bool reports(const std::string& part) const { return reported().find(part) != std::string::npos; }
  int spawned() {
    int count = static_cast<int>(sink.spawns.size());
    start_workers(count);
    return count;
  }
};

TEST_F(StartsTest, MaxWorkersDoesNotBoundActors) {
  settings.max_workers = 2;
  settings.worker_start_concurrency = 3;
  make(1);
  for (uint32_t i = 1; i <= 20; ++i) {
    auto request = actor(i, {}, {});
    create(request);
  }
  for (int i = 0; i < 20; ++i) {
    start_worker();
    RecordingSink::take(sink.starts);
  }
  EXPECT_EQ(reported(), "");
  // They leave what tasks may have.
  want(1, demand(3, {}));
  start_workers(2);
  take_grant();
  take_grant();
  EXPECT_TRUE(reports("max_workers")) << reported();
}

TEST_F(StartsTest, WaitingActorsGetProcessesBesideTasksThatHaveReachedMaxWorkers) {
  settings.max_workers = 2;
  make(1);
  want(1, demand(5, {}));
  start_workers(2);
  take_grant();
  take_grant();
  create(actor(1, {}, {}));
  start_worker();
  RecordingSink::take(sink.starts);
}

TEST_F(StartsTest, ABlockedTaskDoesNotCountForMaxWorkers) {
  settings.max_workers = 2;
  make(1);
  for (OwnerId depth = 1; depth <= 10; ++depth) {
    want(depth, demand(1));
    start_worker();
    core->set_blocked(worker_of(take_grant()), true, now());
    pass(20 * kMs);
  }
}

TEST_F(StartsTest, MaxWorkersThatIsReachedIsReportedAndSaidOnceToEachDriver) {
  settings.max_workers = 2;
  make(1);
  want(1, demand(5, {}));
  start_workers(2);
  auto a = take_grant();
  take_grant();
  EXPECT_TRUE(reports("3 of f: a worker process: 2 of the node run")) << reported();
  EXPECT_TRUE(reports("max_workers")) << reported();
  pass(900 * kMs);
  EXPECT_EQ(sink.rest(), "");
  pass(200 * kMs);
  auto notice = RecordingSink::take(sink.notices).message;
  EXPECT_FALSE(notice.fatal());
  EXPECT_EQ(notice.job_id(), job().binary());
  EXPECT_NE(notice.message().find("max_workers"), std::string::npos) << notice.message();
  pass(5000 * kMs);
  want(2, demand(1, {}, 1, 2));
  pass(1100 * kMs);
  EXPECT_EQ(RecordingSink::take(sink.notices).message.job_id(), job(2).binary());
  core->worker_disconnected(worker_of(a), now());
  sink.kills.clear();
  start_worker();
  take_grant();
}

// The idle worker is asked, not killed: others may hold values that it owns.
TEST_F(StartsTest, AnIdleWorkerOfAnotherJobMakesRoom) {
  settings.max_workers = 1;
  make(1, 1);
  WorkerId first = start_worker();
  want(1, demand(1));
  give_back(take_grant());
  want(2, demand(1, {{"CPU", 1}}, 1, 2));
  EXPECT_EQ(RecordingSink::take(sink.exits), first);
  start_worker();
  EXPECT_EQ(take_grant().owner, 2u);
}

TEST_F(StartsTest, NoMoreThanMaxWorkersAreKeptWithoutNeed) {
  settings.max_workers = 2;
  make(8, 8);
  start_workers(2);
  for (int i = 0; i < 10; ++i) pass(1'000'000);
  EXPECT_EQ(sink.rest(), "");
}

TEST_F(StartsTest, ProcessesThatStartAtTheSameTimeAreBoundedAndReported) {
  settings.worker_start_concurrency = 2;
  make(8);
  want(1, demand(5));
  EXPECT_EQ(sink.spawns.size(), 2u);
  EXPECT_TRUE(reports("5 of f: ")) << reported();
  EXPECT_TRUE(reports("worker_start_concurrency")) << reported();
  create(actor(1, {{"CPU", 2}}, {}));
  EXPECT_TRUE(reports("1 of : ")) << reported();
  pass(10'100 * kMs);
  EXPECT_NE(RecordingSink::take(sink.notices).message.message().find("worker_start_concurrency"),
            std::string::npos);
  while (spawned() > 0) {}
  EXPECT_EQ(reported(), "");
  sink.grants.clear();
  sink.starts.clear();
}

TEST_F(StartsTest, AStartThatIsTriedAgainIsReportedWithTheCause) {
  make(1);
  want(1, demand(1));
  EXPECT_TRUE(reports("which is being started")) << reported();
  core->worker_start_failed(RecordingSink::take(sink.spawns).id, "fork: no more processes", now());
  EXPECT_TRUE(reports("fork: no more processes")) << reported();
  EXPECT_TRUE(reports("worker_start_retries")) << reported();
}

TEST_F(StartsTest, ProcessesThatFailTogetherCountAsOneFailure) {
  make(8);
  want(1, demand(8));
  const auto spawns = std::exchange(sink.spawns, {});
  ASSERT_EQ(spawns.size(), 8u);
  for (const auto& spawn : spawns)
    core->worker_start_failed(spawn.id, "the fork server has ended", now());
  core->check_invariants();
  for (const auto& notice : sink.notices) EXPECT_FALSE(notice.message.fatal());
  EXPECT_TRUE(sink.spawns.empty());
  pass(250 * kMs);
  EXPECT_EQ(std::exchange(sink.spawns, {}).size(), 1u);
}

TEST_F(StartsTest, WhatIsKeptForAnotherDemandIsReported) {
  make(2, 3);
  start_workers(3);
  want(1, demand(1));
  take_grant();
  want(2, demand(1, {{"CPU", 2}}));
  pass(1100 * kMs);
  sink.revokes.clear();
  want(3, demand(1));
  EXPECT_TRUE(reports("others that have waited longer")) << reported();
}

TEST_F(StartsTest, DemandsBeyondThoseThatAreReportedAreCounted) {
  settings.demands_per_node = 2;
  make(1);
  for (int i = 1; i <= 4; ++i) want(1, demand(3, {{"CPU", 1 + i}}, static_cast<uint64_t>(i)));
  proto::ResourceReport report;
  core->view().fill_report(&report);
  EXPECT_EQ(report.demands_size(), 2);
  EXPECT_EQ(report.demands_left_out(), 6);
}

// The first processes that take the places of blocked tasks start at once, the others with pauses
// that grow up to blocked_start_pause_max_ms.
TEST_F(StartsTest, ManyBlockedTasksGetProcessesWithPauses) {
  make(40, 40);
  settings.worker_start_concurrency = 1000;
  while (spawned() > 0) {}
  want(1, demand(40));
  std::vector<WorkerId> parents;
  for (int i = 0; i < 40; ++i) parents.push_back(worker_of(take_grant()));
  for (int i = 0; i < 4; ++i) core->set_blocked(parents[static_cast<size_t>(i)], true, now());
  want(2, demand(40));
  EXPECT_EQ(sink.spawns.size(), 4u);
  for (size_t i = 4; i < 40; ++i) core->set_blocked(parents[i], true, now());
  EXPECT_LE(sink.spawns.size(), 9u);
  EXPECT_TRUE(reports("blocked_start_pause_max_ms")) << reported();
  // Each start follows after a pause, and the core asks for the tick that ends it.
  size_t before = sink.spawns.size();
  while (sink.spawns.size() < 40) {
    const int64_t next = core->next_tick_us();
    ASSERT_LE(next, time_us + settings.blocked_start_pause_max_ms * kMs);
    pass(next - time_us);
    ASSERT_LE(sink.spawns.size(), before + 1);
    before = sink.spawns.size();
  }
  start_workers(40);
  for (int i = 0; i < 40; ++i) take_grant();
}

TEST_F(StartsTest, EventsDoNotPostponeTheTickThatIsDue) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  take_grant();
  EXPECT_EQ(core->next_tick_us(), -1);
  want(2, demand(1));
  const int64_t due_us = core->next_tick_us();
  EXPECT_GT(due_us, time_us);
  time_us += 5 * kMs;
  core->nodes_settled(now());
  EXPECT_EQ(core->next_tick_us(), due_us);
  pass(due_us - time_us);
  EXPECT_GT(core->next_tick_us(), time_us);
}

}  // namespace
}  // namespace rt::node
