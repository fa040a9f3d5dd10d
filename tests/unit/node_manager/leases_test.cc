// Leases in the node-manager's core: demands, grants, fairness between owners, redirects to other
// nodes, and workers that fail.
#include "core_fixture.h"

namespace rt::node {
namespace {

TEST_F(NodeCoreTest, WarmWorkersAreStartedBeforeAnybodyAsks) {
  make(2, -1);
  EXPECT_EQ(sink.spawns.size(), 2u);
  start_workers(2);
  want(1, demand(1));
  EXPECT_EQ(take_grant().owner, 1u);
}

TEST_F(NodeCoreTest, GrantsAsFarAsResourcesGo) {
  make(2, 2);
  start_workers(2);
  want(1, demand(5));
  auto first = take_grant(), second = take_grant();
  EXPECT_NE(first.message.lease_id(), second.message.lease_id());
  EXPECT_EQ(free_cpus(), 0);
  give_back(first);
  auto third = take_grant();
  EXPECT_EQ(worker_of(third), worker_of(first));
  // A demand is a level: an owner that wants less sends a new level, and cancels nothing.
  want(1, demand(0));
  give_back(second);
  give_back(third);
  EXPECT_EQ(free_cpus(), 2);
}

TEST_F(NodeCoreTest, AMissingWorkerIsStartedAndGrantedOnceItRegisters) {
  make(2);
  want(1, demand(2));
  EXPECT_EQ(sink.spawns.size(), 2u);
  WorkerId id = start_worker();
  EXPECT_EQ(worker_of(take_grant()), id);
  start_worker();
  take_grant();
}

TEST_F(NodeCoreTest, CountsGrantsTheirWaitsAndTheEndsOfWorkers) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto first = take_grant();
  want(2, demand(1));
  EXPECT_EQ(core->view().leases().waiting_tasks(), (std::pair<int64_t, int64_t>(1, 0)));
  pass(20 * kMs);
  give_back(first);
  auto second = take_grant();
  EXPECT_EQ(core->view().leases().waiting_tasks(), (std::pair<int64_t, int64_t>(0, 0)));
  const proto::NodeCounters& counters = core->view().counters();
  EXPECT_EQ(counters.leases_granted(), 2);
  EXPECT_EQ(counters.lease_wait(0), 1);  // Granted at once.
  EXPECT_EQ(counters.lease_wait(3), 1);  // The bucket up to 50 ms.
  EXPECT_EQ(counters.lease_wait_ms(), 20);
  EXPECT_EQ(counters.workers_started(), 1);
  EXPECT_EQ(counters.workers_failed(), 0);
  WorkerId id = worker_of(second);
  core->worker_disconnected(id, now());
  RecordingSink::take(sink.kills);
  reap(id, SIGSEGV, 0, "");
  RecordingSink::take(sink.deaths);
  EXPECT_EQ(counters.workers_failed(), 1);
  start_worker();
  EXPECT_EQ(counters.workers_started(), 2);
}

TEST_F(NodeCoreTest, LeasesWithoutCpuGoBeyondTheCpuCount) {
  make(1);
  want(1, demand(4, {}));
  start_workers(4);
  for (int i = 0; i < 4; ++i) take_grant();
  EXPECT_EQ(free_cpus(), 1);
}

TEST_F(NodeCoreTest, OwnersShareResourcesEqually) {
  make(4, 4);
  want(1, demand(10));
  want(2, demand(10));
  start_workers(4);
  std::map<OwnerId, int> granted;
  std::vector<RecordingSink::Grant> of_one;
  for (int i = 0; i < 4; ++i) {
    auto grant = take_grant();
    ++granted[grant.owner];
    if (grant.owner == 1) of_one.push_back(grant);
  }
  EXPECT_EQ(granted[1], 2);
  EXPECT_EQ(granted[2], 2);
  // The owner with fewer leases comes next.
  give_back(of_one[0]);
  EXPECT_EQ(take_grant().owner, 1u);
}

TEST_F(NodeCoreTest, AWaitingOwnerGetsALeaseRevokedFromTheRichest) {
  make(2, 2);
  start_workers(2);
  want(1, demand(2));
  auto a = take_grant(), b = take_grant();
  want(2, demand(1));
  pass(50 * kMs);
  EXPECT_EQ(sink.rest(), "");
  pass(60 * kMs);
  auto revoked = RecordingSink::take(sink.revokes);
  EXPECT_EQ(revoked.owner, 1u);
  ASSERT_EQ(revoked.leases.size(), 1u);
  pass(50 * kMs);  // One revoked lease is enough, and it is not revoked again.
  give_back(revoked.leases[0] == a.message.lease_id() ? a : b);
  EXPECT_EQ(take_grant().owner, 2u);
  // With one lease each, no owner has clearly more, so nothing is revoked.
  want(2, demand(1));
  pass(200 * kMs);
}

TEST_F(NodeCoreTest, TwoClassesOnOneCpuTakeTurns) {
  make(1, 1);
  start_workers(1);
  want(1, demand(3));
  auto held = take_grant();
  want(1, demand(3, {{"CPU", 1}}, 2));
  pass(101 * kMs);
  EXPECT_EQ(RecordingSink::take(sink.revokes).leases[0], held.message.lease_id());
  give_back(held);
  EXPECT_EQ(take_grant().message.class_id(), 2u);
}

TEST_F(NodeCoreTest, AStarvedLargeDemandKeepsSmallOnesFromItsShare) {
  make(2, 2);
  start_workers(2);
  want(1, demand(100));
  auto a = take_grant(), b = take_grant();
  want(2, demand(1, {{"CPU", 2}}));
  pass(1100 * kMs);
  sink.revokes.clear();
  give_back(a);  // Owner 1 does not get it again.
  EXPECT_EQ(sink.rest(), "");
  give_back(b);
  EXPECT_EQ(take_grant().owner, 2u);
}

// A task holds the resource R and waits for its child. What waits for R needs CPUs as well, and
// must not keep them from the child: the task would never end, and R never come back.
TEST_F(NodeCoreTest, AStarvedDemandLeavesCpusToTheChildrenOfTheTaskThatItWaitsFor) {
  make_with({{"CPU", 2}, {"R", 1}}, 2);
  start_workers(2);
  want(1, demand(1, {{"CPU", 1}, {"R", 1}}));
  auto parent = take_grant();
  want(1, demand(1, {{"CPU", 2}, {"R", 1}}, 2));
  pass(1100 * kMs);
  sink.revokes.clear();
  core->set_blocked(worker_of(parent), true, now());
  want(2, demand(1));
  auto child = take_grant();
  EXPECT_EQ(child.owner, 2u);
  give_back(child);
  core->set_blocked(worker_of(parent), false, now());
  give_back(parent);
  EXPECT_EQ(take_grant().message.class_id(), 2u);
}

// An actor keeps what it holds for as long as it likes, so nothing is kept free for what needs it.
TEST_F(NodeCoreTest, AStarvedDemandLeavesCpusToOthersWhileAnActorHoldsWhatItLacks) {
  make_with({{"CPU", 2}, {"R", 1}}, 2);
  start_workers(2);
  auto holder = actor(1, {{"CPU", 1}, {"R", 1}}, {{"R", 1}});
  create(holder);
  sink.starts.clear();
  constructed(holder);
  sink.created.clear();
  start_worker();  // The pool is filled up again.
  want(1, demand(1, {{"CPU", 2}, {"R", 1}}));
  pass(1100 * kMs);
  want(2, demand(1));
  EXPECT_EQ(take_grant().owner, 2u);
}

// Enough of a device is free in sum, but a blocked task has a part of the only one that would do.
TEST_F(NodeCoreTest, AStarvedDemandForAWholeGpuLeavesItToTheChildrenOfATaskThatHasAPart) {
  make_with({{"CPU", 2}, {"GPU", 2}});
  want(1, demand(1, {{"GPU", 0.4}}));
  start_worker();
  auto parent = take_grant();
  want(1, demand(1, {{"GPU", 2}}, 2));
  pass(1100 * kMs);
  sink.revokes.clear();
  core->set_blocked(worker_of(parent), true, now());
  want(2, demand(1, {{"GPU", 1}}));
  start_worker();
  EXPECT_EQ(take_grant().owner, 2u);
}

// A task may wait for its children without saying so, in a loop of its own. Its node cannot know,
// so what a starved demand keeps free is given to others from time to time.
TEST_F(NodeCoreTest, WhatAStarvedDemandKeepsFreeIsGivenToOthersHalfOfTheTime) {
  make(2, 2);
  start_workers(2);
  want(1, demand(1));
  auto parent = take_grant();
  want(2, demand(1, {{"CPU", 2}}));
  pass(1100 * kMs);
  sink.revokes.clear();
  want(3, demand(1));
  EXPECT_EQ(sink.rest(), "");
  pass(450 * kMs);
  auto child = take_grant();
  EXPECT_EQ(child.owner, 3u);
  pass(500 * kMs);
  want(4, demand(1));
  give_back(child);
  sink.revokes.clear();
  EXPECT_EQ(sink.rest(), "");
}

TEST_F(NodeCoreTest, ABlockedTaskLendsItsCpuAndTakesItBackAtOnce) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto outer = take_grant();
  want(2, demand(1));
  core->set_blocked(worker_of(outer), true, now());
  WorkerId second = start_worker();
  auto inner = take_grant();
  EXPECT_EQ(worker_of(inner), second);
  core->set_blocked(worker_of(outer), false, now());
  core->check_invariants();
  EXPECT_EQ(free_cpus(), -1);
  proto::ResourceReport report;
  core->view().fill_report(&report);
  EXPECT_TRUE(report.available().units().empty());  // A negative amount is reported as none.
  give_back(inner);
  EXPECT_EQ(free_cpus(), 0);
  core->set_blocked(worker_of(outer), true, now());
  give_back(outer);  // Returned while its task is blocked.
  EXPECT_EQ(free_cpus(), 1);
}

TEST_F(NodeCoreTest, AnOwnersEndReturnsItsLeasesAndEndsTheirWorkers) {
  make(2, 2);
  start_workers(2);
  want(1, demand(3));
  auto a = take_grant(), b = take_grant();
  give_back(b);
  take_grant();
  core->owner_closed(1, now());
  core->check_invariants();
  EXPECT_EQ(free_cpus(), 2);
  EXPECT_EQ(sink.exits.size(), 2u);
  sink.exits.clear();
  sink.spawns.clear();  // Warm workers replace them.
  EXPECT_TRUE(sink.kills.empty());
  time_us += 1'100'000;  // Workers that were asked to leave and stay are killed.
  core->tick(now());
  EXPECT_EQ(sink.kills.size(), 2u);
  sink.kills.clear();
  reap(worker_of(a), SIGKILL);
  EXPECT_EQ(RecordingSink::take(sink.deaths).info.kind(), proto::ExitInfo::OWNER_DIED);
}

TEST_F(NodeCoreTest, AWorkersDeathFreesItsLeaseAndTellsHow) {
  make(1, 1);
  start_workers(1);
  want(1, demand(2));
  auto lease = take_grant();
  WorkerId id = worker_of(lease);
  core->worker_disconnected(id, now());
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  EXPECT_EQ(core->view().workers().exit_of(id), nullptr);
  reap(id, SIGSEGV, 0, "Segmentation fault\n");
  auto death = RecordingSink::take(sink.deaths);
  EXPECT_EQ(death.info.kind(), proto::ExitInfo::SIGNALED);
  EXPECT_EQ(death.info.signal(), SIGSEGV);
  EXPECT_EQ(death.info.log_tail(), "Segmentation fault\n");
  EXPECT_NE(death.info.message().find("SIGSEGV"), std::string::npos);
  ASSERT_NE(core->view().workers().exit_of(id), nullptr);
  give_back(lease, true);  // This comes too late and does no harm.
  start_worker();
  take_grant();  // The demand still wanted one more lease.
}

TEST_F(NodeCoreTest, ALeaseReturnedAsFailedEndsItsWorker) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  give_back(lease, true);
  EXPECT_TRUE(sink.kills.empty());  // The worker may be about to leave by itself.
  EXPECT_EQ(sink.exits.size(), 1u);
  sink.exits.clear();
  time_us += 1'100'000;
  core->tick(now());
  EXPECT_EQ(RecordingSink::take(sink.kills), worker_of(lease));
  start_worker();
  proto::LeaseReturn unknown;
  unknown.set_lease_id(4711);
  core->return_lease(1, unknown, now());  // An unknown lease is ignored.
}

TEST_F(NodeCoreTest, AWorkerThatLeavesIsNeitherLeasedAgainNorEnded) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  proto::LeaseReturn request;
  request.set_lease_id(lease.message.lease_id());
  request.set_worker_leaves(true);
  core->return_lease(lease.owner, request, now());
  core->check_invariants();
  // Its CPU is free for another worker, while it stays for the sake of what it owns.
  want(1, demand(1));
  EXPECT_NE(start_worker(), worker_of(lease));
  EXPECT_NE(worker_of(take_grant()), worker_of(lease));
  pass(60'000 * kMs);
  EXPECT_TRUE(sink.exits.empty());
  EXPECT_TRUE(sink.kills.empty());
  core->worker_disconnected(worker_of(lease), now());
  EXPECT_EQ(RecordingSink::take(sink.kills), worker_of(lease));
  reap(worker_of(lease), 0, 0);
  EXPECT_EQ(RecordingSink::take(sink.deaths).info.kind(), proto::ExitInfo::INTENTIONAL);
}

TEST_F(NodeCoreTest, ProcessesServeOneJobOnly) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  give_back(lease);
  want(2, demand(1, {{"CPU", 1}}, 1, 2));
  WorkerId other = start_worker();
  EXPECT_NE(other, worker_of(lease));
  EXPECT_EQ(worker_of(take_grant()), other);
}

TEST_F(NodeCoreTest, AFinishedJobsWorkersEndAndItsDemandIsRefused) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  core->job_finished(job(), now());
  EXPECT_EQ(RecordingSink::take(sink.exits), worker_of(lease));
  reap(worker_of(lease), SIGKILL);
  EXPECT_EQ(RecordingSink::take(sink.deaths).info.kind(), proto::ExitInfo::JOB_FINISHED);
  start_worker();
  want(1, demand(1));
  EXPECT_TRUE(RecordingSink::take(sink.notices).message.fatal());
}

// Tasks of detached actors run in workers of their own, which stay until the job is over.
TEST_F(NodeCoreTest, WhatOutlivesItsJobHasWorkersOfItsOwn) {
  make(2, 1);
  start_workers(1);
  auto outliving = demand(1);
  outliving.mutable_job()->set_outlives_job(true);
  want(1, demand(1));
  auto plain = take_grant();
  give_back(plain);
  want(2, outliving);
  WorkerId other = start_worker();
  EXPECT_NE(other, worker_of(plain));
  auto lease = take_grant();
  EXPECT_EQ(worker_of(lease), other);
  core->job_finished(job(), now());
  EXPECT_EQ(RecordingSink::take(sink.exits), worker_of(plain));
  reap(worker_of(plain), 0, 0);
  RecordingSink::take(sink.deaths);
  give_back(lease);
  want(2, outliving);
  auto again = take_grant();
  EXPECT_EQ(worker_of(again), other);
  core->job_over(job(), now());
  EXPECT_EQ(RecordingSink::take(sink.exits), other);
  reap(other, 0, 0);
  EXPECT_EQ(RecordingSink::take(sink.deaths).info.kind(), proto::ExitInfo::JOB_FINISHED);
  sink.spawns.clear();  // A warm worker is started.
}

TEST_F(NodeCoreTest, IdleWorkersBeyondTheWarmOnesAreAskedToLeave) {
  make(4, 1);
  start_workers(1);
  want(1, demand(2));
  start_worker();
  auto a = take_grant(), b = take_grant();
  give_back(a);
  give_back(b);
  pass(900 * kMs);
  EXPECT_EQ(sink.rest(), "");
  pass(200 * kMs);
  WorkerId leaving = RecordingSink::take(sink.exits);
  core->worker_disconnected(leaving, now());
  EXPECT_EQ(RecordingSink::take(sink.kills), leaving);
  reap(leaving, 0, 0);
  EXPECT_EQ(RecordingSink::take(sink.deaths).info.kind(), proto::ExitInfo::INTENTIONAL);
  pass(5000 * kMs);
}

TEST_F(NodeCoreTest, WhatIsNotPartOfThisReleaseSaysSo) {
  make(1);
  auto d = demand(1);
  d.set_strategy(static_cast<proto::SchedulingStrategy>(99));
  want(1, d);
  auto notice = RecordingSink::take(sink.notices).message;
  EXPECT_TRUE(notice.fatal());
  EXPECT_NE(notice.message().find("strategy 99"), std::string::npos);
  d = demand(1);
  d.mutable_job()->clear_job_id();
  want(1, d);
  EXPECT_TRUE(RecordingSink::take(sink.notices).message.fatal());
}

TEST_F(NodeCoreTest, RedirectsWhenAnotherNodeHasRoomAndThisOneHasNot) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  take_grant();
  core->node_changed(peer(1, {{"CPU", 4}}, {{"CPU", 2}}));
  want(1, demand(5, {{"CPU", 1}}, 2));
  auto redirect = RecordingSink::take(sink.redirects);
  EXPECT_EQ(redirect.message.class_id(), 2u);
  EXPECT_EQ(redirect.message.count(), 2);  // No more than have room there.
  // The other node's report is outdated: the room that was just given away is not offered again.
  want(1, demand(3, {{"CPU", 1}}, 2));
  pass(15 * kMs);
  EXPECT_EQ(sink.rest(), "");
}

TEST_F(NodeCoreTest, AnswersOnTheirWayCountAgainstADemandThatCrossesThem) {
  make(4, 2);
  start_workers(2);
  want(1, demand(2));
  auto first = take_grant(), second = take_grant();
  // The owner has seen only the first grant and wants three more. The second grant is one of them.
  auto d = demand(3);
  d.set_last_answer(first.message.lease_id());
  core->set_demand(1, {}, d, now());
  start_workers(2);
  take_grant(), take_grant();
  pass(20 * kMs);
  EXPECT_EQ(sink.rest(), "");
  // A demand of zero does not become negative by the grant that is still under way.
  d = demand(0);
  d.set_last_answer(first.message.lease_id());
  core->set_demand(1, {}, d, now());
  core->check_invariants();
}

TEST_F(NodeCoreTest, RedirectsOnTheirWayCountToo) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto held = take_grant();
  core->node_changed(peer(1, {{"CPU", 4}}, {{"CPU", 2}}));
  want(1, demand(2, {{"CPU", 1}}, 2));
  auto redirect = RecordingSink::take(sink.redirects);
  EXPECT_EQ(redirect.message.count(), 2);
  // The owner repeats its demand before it has read the redirect, which already answers both
  // leases.
  auto d = demand(2, {{"CPU", 1}}, 2);
  d.set_last_answer(held.message.lease_id());
  core->set_demand(1, {}, d, now());
  give_back(held);
  pass(20 * kMs);
  EXPECT_EQ(sink.rest(), "");
  // A demand that was sent after the redirect was read is served here.
  want(1, demand(1, {{"CPU", 1}}, 2));
  take_grant();
}

TEST_F(NodeCoreTest, SpilledDemandsStay) {
  make(1, 1);
  start_workers(1);
  core->node_changed(peer(1, {{"CPU", 4}}, {{"CPU", 4}}));
  auto d = demand(2);
  d.set_no_spill(true);
  want(1, d);
  take_grant();
  pass(20 * kMs);
}

TEST_F(NodeCoreTest, PacksUpToTheThresholdThenSpreads) {
  make(4, 4);
  start_workers(4);
  core->node_changed(peer(1, {{"CPU", 4}}, {{"CPU", 4}}));
  want(1, demand(8));
  EXPECT_EQ(sink.grants.size(), 4u);
  sink.grants.clear();
  int redirected = 0;
  while (!sink.redirects.empty()) redirected += RecordingSink::take(sink.redirects).message.count();
  EXPECT_EQ(redirected, 4);
}

TEST_F(NodeCoreTest, SpreadTakesTurns) {
  make(4, 4);
  start_workers(4);
  core->node_changed(peer(1, {{"CPU", 4}}, {{"CPU", 4}}));
  auto d = demand(4);
  d.set_strategy(proto::SPREAD);
  want(1, d);
  EXPECT_EQ(sink.grants.size(), 2u);
  sink.grants.clear();
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.count(), 2);
}

TEST_F(NodeCoreTest, WhatOnlyAnotherNodeCanRunGoesThere) {
  make(1);
  // The only GPU is busy, but its node is the only one that can ever run the task.
  core->node_changed(peer(1, {{"CPU", 1}, {"GPU", 1}}, {{"CPU", 1}}));
  want(1, demand(1, {{"GPU", 1}}));
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.count(), 1);
}

TEST_F(NodeCoreTest, AnInfeasibleDemandIsReportedAndRunsWhenANodeJoins) {
  make(1);
  want(1, demand(1, {{"GPU", 2}}));
  pass(10 * kMs);
  proto::ResourceReport report;
  core->view().fill_report(&report);
  ASSERT_EQ(report.demands_size(), 1);
  EXPECT_TRUE(report.demands(0).infeasible());
  EXPECT_EQ(sink.rest(), "");
  pass(1000 * kMs);
  auto notice = RecordingSink::take(sink.notices).message;
  EXPECT_TRUE(notice.infeasible());
  EXPECT_FALSE(notice.fatal());
  EXPECT_NE(notice.message().find("'GPU': 2.0"), std::string::npos);
  // The notice also names the resources that exist, and is not repeated.
  EXPECT_NE(notice.message().find("'CPU': 1.0"), std::string::npos);
  pass(5000 * kMs);
  core->node_changed(peer(3, {{"GPU", 2}}, {{"GPU", 2}}));
  core->nodes_settled(now());
  pass(20 * kMs);
  RecordingSink::take(sink.redirects);
}

TEST_F(NodeCoreTest, OldDescriptionsAreIgnoredButOldDeathsAreNot) {
  make(1);
  auto node = peer(1, {{"GPU", 1}}, {{"GPU", 1}}, 5);
  core->node_changed(node);
  node.clear_available();
  node.set_incarnation(4);
  core->node_changed(node);
  EXPECT_EQ(core->view().cluster().peers().begin()->second.available.get("GPU"), 1);
  node.set_alive(false);
  core->node_changed(node);
  EXPECT_TRUE(core->view().cluster().peers().empty());
}

TEST_F(NodeCoreTest, WorkersThatCannotStartAreTriedAgainAndThenSaidToFail) {
  make(1);
  want(1, demand(1));
  for (int attempt = 0; attempt < settings.worker_start_retries; ++attempt) {
    core->worker_start_failed(RecordingSink::take(sink.spawns).id, "no python here", now());
    core->check_invariants();
    EXPECT_TRUE(sink.spawns.empty());  // The next attempt waits for the back-off.
    pass(5000 * kMs);
  }
  auto warning = RecordingSink::take(sink.notices);
  EXPECT_FALSE(warning.message.fatal());
  EXPECT_NE(warning.message.message().find("no python here"), std::string::npos);
  WorkerId last = RecordingSink::take(sink.spawns).id;
  core->worker_spawned(last, 77, now());
  reap(last, 0, 1, "ModuleNotFoundError: ray\n");
  auto notice = RecordingSink::take(sink.notices);
  EXPECT_TRUE(notice.message.fatal());
  EXPECT_NE(notice.message.message().find("ModuleNotFoundError"), std::string::npos);
  RecordingSink::take(sink.deaths);
  // A later demand tries again and succeeds.
  pass(60'000 * kMs);
  want(1, demand(1));
  start_worker();
  take_grant();
}

TEST_F(NodeCoreTest, AWorkerThatNeverRegistersIsEnded) {
  make(1, 1);
  WorkerId id = RecordingSink::take(sink.spawns).id;
  core->worker_spawned(id, 5, now());
  pass(settings.worker_register_timeout_ms * kMs + 1);
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  reap(id, SIGKILL);
  RecordingSink::take(sink.deaths);
  EXPECT_FALSE(core->worker_registered(id, 5, "", now()));
}

TEST_F(NodeCoreTest, ALostExitStatusIsNotWaitedForForever) {
  make(1, 1);
  WorkerId id = start_worker();
  core->worker_disconnected(id, now());
  sink.kills.clear();
  start_worker();
  pass(2001 * kMs);
  auto death = RecordingSink::take(sink.deaths);
  EXPECT_EQ(death.id, id);
  EXPECT_EQ(death.info.kind(), proto::ExitInfo::UNKNOWN);
}

}  // namespace
}  // namespace rt::node
