// Bundles of placement groups that the head reserves on a node and gives back.
#include "bundle_fixture.h"

namespace rt::node {
namespace {

using testing::HasSubstr;

TEST_F(BundleTest, AllBundlesAreReservedOrNone) {
  make(4);
  reserve(1, {{{"CPU", 1}}, {{"CPU", 2}}});
  EXPECT_EQ(free_cpus(), 1);
  EXPECT_EQ(free_in(0), 1);
  EXPECT_EQ(free_in(1), 2);
  prepare(1, {{{"CPU", 1}}, {{"CPU", 1}}}, 2);
  EXPECT_THAT(answer(1, 2), HasSubstr("lacks {'CPU': 1.0}"));
  EXPECT_EQ(core->view().bundles().size(), 2u);
  EXPECT_EQ(free_cpus(), 1);
}

TEST_F(BundleTest, WhatTheNodeDoesNotHaveIsRefusedAtOnceWithTheReason) {
  make(4);
  prepare(1, {{{"CPU", 3}}, {{"CPU", 2}}});
  EXPECT_THAT(answer(1), HasSubstr("node 10.0.0.1 has {'CPU': 4.0}, and the bundles need"));
  prepare(1, {{{"R", 1}}}, 2);
  EXPECT_THAT(answer(1, 2), HasSubstr("'R': 1.0"));
}

TEST_F(BundleTest, ARequestThatMakesNoSenseIsRefused) {
  make(4);
  proto::PrepareBundlesRequest request;
  request.set_group_id("short");
  request.set_job_id(job().binary());
  core->prepare_bundles(request, now());
  EXPECT_THAT(RecordingSink::take(sink.prepared).reply.why_not(), HasSubstr("no valid group"));
  prepare_some(1, {});
  EXPECT_THAT(answer(1), HasSubstr("names none"));
  prepare_some(1, {{-1, {{"CPU", 1}}}});
  EXPECT_THAT(answer(1), HasSubstr("names bundle -1"));
}

TEST_F(BundleTest, ARepeatedRequestGetsTheSameAnswer) {
  make(2);
  reserve(1, {{{"CPU", 1}}});
  reserve(1, {{{"CPU", 1}}});
  EXPECT_EQ(free_cpus(), 1);
  prepare(7, {{{"CPU", 2}}}, 2);
  const std::string why = answer(7, 2);
  EXPECT_NE(why, "");
  return_bundles(1);
  // There would be room now, but the head has given this attempt up.
  prepare(7, {{{"CPU", 2}}}, 2);
  EXPECT_EQ(answer(7, 2), why);
  reserve(8, {{{"CPU", 2}}}, 2);
}

TEST_F(BundleTest, ALaterAttemptTakesThePlaceOfAnEarlierOneAndAnEarlierOneIsRefused) {
  make(2);
  reserve(5, {{{"CPU", 2}}});
  prepare(4, {{{"CPU", 1}}});
  EXPECT_THAT(answer(4), HasSubstr("later attempt"));
  EXPECT_EQ(bundle(0)->epoch, 5);
  reserve(6, {{{"CPU", 1}}});
  EXPECT_EQ(bundle(0)->epoch, 6);
  EXPECT_EQ(free_cpus(), 1);
}

TEST_F(BundleTest, ALaterAttemptWaitsUntilTheProcessesInTheEarlierBundleAreGone) {
  make(2);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand_in(0, 1));
  WorkerId id = start_worker();
  take_grant();
  prepare(2, {{{"CPU", 1}}});
  EXPECT_EQ(RecordingSink::take(sink.exits), id);
  EXPECT_TRUE(sink.prepared.empty());
  reap(id, SIGKILL);
  // As for a lost worker, so that its tasks run again.
  EXPECT_EQ(RecordingSink::take(sink.deaths).info.kind(), proto::ExitInfo::SIGNALED);
  EXPECT_EQ(answer(2), "");
  EXPECT_EQ(bundle(0)->epoch, 2);
}

TEST_F(BundleTest, AnAttemptThatIsGivenBackBeforeItComesReservesNothing) {
  make(2);
  return_bundles(3);
  prepare(3, {{{"CPU", 1}}});
  EXPECT_THAT(answer(3), HasSubstr("given the bundles back"));
  prepare(2, {{{"CPU", 1}}});
  EXPECT_THAT(answer(2), HasSubstr("ended here already"));
  EXPECT_EQ(core->view().bundles().size(), 0u);
  reserve(4, {{{"CPU", 1}}});
}

TEST_F(BundleTest, OnlyTheNamedBundlesOfSuchAttemptsAreGivenBack) {
  make(4);
  reserve(2, {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 1}}});
  return_bundles(1);
  EXPECT_EQ(core->view().bundles().size(), 3u);
  return_bundles(2, {1, 7});
  EXPECT_EQ(core->view().bundles().size(), 2u);
  EXPECT_EQ(bundle(1), nullptr);
  return_bundles(2, {}, 9);
  EXPECT_EQ(core->view().bundles().size(), 2u);
  return_bundles(2);
  EXPECT_EQ(core->view().bundles().size(), 0u);
  EXPECT_EQ(free_cpus(), 4);
}

// ---- waiting

TEST_F(BundleTest, LeasesThatAreKeptAreRevokedForBundles) {
  make(2, 2);
  start_workers(2);
  want(1, demand(2));
  auto a = take_grant(), b = take_grant();
  prepare(1, {{{"CPU", 1}}, {{"CPU", 1}}});
  pass(90 * kMs);
  EXPECT_EQ(sink.rest(), "");
  pass(20 * kMs);
  EXPECT_EQ(sink.revokes.size(), 2u);
  sink.revokes.clear();
  give_back(a);
  EXPECT_TRUE(sink.prepared.empty());
  give_back(b);
  EXPECT_EQ(answer(1), "");
  EXPECT_EQ(free_cpus(), 0);
}

TEST_F(BundleTest, BundlesThatHaveWaitedInVainAreRefusedWithTheReason) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  take_grant();
  EXPECT_EQ(core->next_tick_us(), -1);
  prepare(1, {{{"CPU", 1}}});
  EXPECT_NE(core->next_tick_us(), -1);
  pass(590 * kMs);
  sink.revokes.clear();
  EXPECT_EQ(sink.rest(), "");
  pass(20 * kMs);
  EXPECT_THAT(answer(1), HasSubstr("node 10.0.0.1 did not have {'CPU': 1.0} free in time"));
  pass(1000 * kMs);
}

TEST_F(BundleTest, ARepeatedRequestThatWaitsIsAnsweredOnceForBoth) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  prepare(1, {{{"CPU", 1}}});
  prepare(1, {{{"CPU", 1}}});
  give_back(lease);
  EXPECT_EQ(answer(1), "");
}

TEST_F(BundleTest, WhatWaitsIsDroppedByItsReturnAndByALaterAttempt) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  prepare(1, {{{"CPU", 1}}});
  prepare(2, {{{"CPU", 1}}});
  EXPECT_THAT(answer(1), HasSubstr("later attempt"));
  return_bundles(2);
  EXPECT_THAT(answer(2), HasSubstr("given the bundles back"));
  give_back(lease);
  EXPECT_EQ(free_cpus(), 1);
}

TEST_F(BundleTest, WhatWaitsWhenTheHeadIsLostIsDroppedAndMayBeAskedForAgain) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  prepare(1, {{{"CPU", 1}}});
  core->head_lost(now());
  core->check_invariants();
  EXPECT_THAT(answer(1), HasSubstr("connection to the head broke"));
  give_back(lease);
  EXPECT_EQ(core->view().bundles().size(), 0u);
  reserve(1, {{{"CPU", 1}}});
  core->head_lost(now());  // A bundle that is held stays for the head to judge.
  EXPECT_EQ(core->view().bundles().size(), 1u);
}

// Small tasks that keep coming would otherwise keep bundles out for ever.
TEST_F(BundleTest, DemandsDoNotTakeWhatComesFreeForBundlesThatWait) {
  make(2, 2);
  start_workers(2);
  want(1, demand(100));
  auto a = take_grant(), b = take_grant();
  prepare(1, {{{"CPU", 2}}});
  want(2, demand(1));
  give_back(a);
  EXPECT_EQ(sink.rest(), "");
  EXPECT_THAT(reported(), HasSubstr("others that have waited longer"));
  give_back(b);
  EXPECT_EQ(answer(1), "");
}

TEST_F(BundleTest, ActorsDoNotTakeWhatComesFreeForBundlesThatWait) {
  make(2, 2);
  start_workers(2);
  want(1, demand(2));
  auto a = take_grant(), b = take_grant();
  prepare(1, {{{"CPU", 2}}});
  give_back(a);
  create(actor(1, {{"CPU", 1}}, {{"CPU", 1}}));
  EXPECT_EQ(sink.rest(), "");
  give_back(b);
  EXPECT_EQ(answer(1), "");
  pass(600 * kMs);
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.no_resources());
}

// Tasks may have to run before what others hold can come back, so that nothing is kept from them
// for as long as it was before.
TEST_F(BundleTest, AfterBundlesHaveWaitedInVainDemandsHaveTheirTurn) {
  make(2, 2);
  start_workers(2);
  want(1, demand(1));
  take_grant();
  prepare(1, {{{"CPU", 2}}});
  want(2, demand(1));
  pass(590 * kMs);
  sink.revokes.clear();
  EXPECT_EQ(sink.rest(), "");
  prepare(1, {{{"CPU", 2}}}, 2);
  pass(20 * kMs);
  EXPECT_NE(answer(1), "");
  EXPECT_EQ(take_grant().owner, 2u);
  pass(700 * kMs);
  EXPECT_NE(answer(1, 2), "");
  sink.revokes.clear();
}

// The amounts of a blocked task come back only after others have run.
TEST_F(BundleTest, NothingIsKeptFreeForBundlesThatLackWhatABlockedTaskHolds) {
  make_with({{"CPU", 2}, {"R", 1}}, 2);
  start_workers(2);
  want(1, demand(1, {{"CPU", 1}, {"R", 1}}));
  auto parent = take_grant();
  core->set_blocked(worker_of(parent), true, now());
  prepare(1, {{{"CPU", 2}, {"R", 1}}});
  want(2, demand(1));
  EXPECT_EQ(take_grant().owner, 2u);
  pass(700 * kMs);
  EXPECT_NE(answer(1), "");
  sink.revokes.clear();
}

TEST_F(BundleTest, AnEarlierAttemptIsNotOvertakenByASmallerOne) {
  make(2, 2);
  start_workers(2);
  want(1, demand(2));
  auto a = take_grant(), b = take_grant();
  prepare(1, {{{"CPU", 2}}});
  prepare(1, {{{"CPU", 1}}}, 2);
  give_back(a);
  EXPECT_TRUE(sink.prepared.empty());
  give_back(b);
  EXPECT_EQ(answer(1), "");
  EXPECT_THAT(answer(1, 2), HasSubstr("lacks"));
}

TEST_F(BundleTest, WhatAnActorHoldsIsNotWaitedFor) {
  make(2, 1);
  start_workers(1);
  auto holder = actor(1, {{"CPU", 1}}, {{"CPU", 1}});
  create(holder);
  sink.starts.clear();
  constructed(holder);
  sink.created.clear();
  sink.spawns.clear();
  prepare(1, {{{"CPU", 2}}});
  EXPECT_THAT(answer(1), HasSubstr("node 10.0.0.1 lacks {'CPU': 1.0}: actors, entrypoints"));
}

TEST_F(BundleTest, WhatAnActorNeedsUntilItIsConstructedIsWaitedFor) {
  make(1, 1);
  start_workers(1);
  auto starting = actor(1, {{"CPU", 1}}, {});
  create(starting);
  sink.starts.clear();
  prepare(1, {{{"CPU", 1}}});
  EXPECT_TRUE(sink.prepared.empty());
  constructed(starting);
  EXPECT_EQ(answer(1), "");
  sink.created.clear();
  sink.spawns.clear();
}

// The task that waits for the group is itself what holds the CPU.
TEST_F(BundleTest, ABundleMayTakeTheCpuThatABlockedTaskLendsAndTheNodeIsInDebtAfterwards) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  core->set_blocked(worker_of(lease), true, now());
  reserve(1, {{{"CPU", 1}}});
  core->set_blocked(worker_of(lease), false, now());
  core->check_invariants();
  EXPECT_EQ(free_cpus(), -1);
  give_back(lease);
  EXPECT_EQ(free_cpus(), 0);
}

// ---- return

TEST_F(BundleTest, AReturnEndsTheTasksAndTheAmountsAreFreeOnceTheirProcessesAreReaped) {
  make(2);
  reserve(1, {{{"CPU", 2}}});
  want(1, demand_in(0, 1));
  WorkerId id = start_worker();
  auto lease = take_grant();
  return_bundles(1);
  EXPECT_EQ(RecordingSink::take(sink.exits), id);
  EXPECT_TRUE(core->view().leases().leases().empty());
  EXPECT_EQ(free_cpus(), 0);
  want(2, demand(1));
  EXPECT_EQ(sink.rest(), "");
  pass(300 * kMs);  // Its code has no say in that.
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  EXPECT_EQ(free_cpus(), 0);
  reap(id, SIGKILL);
  auto death = RecordingSink::take(sink.deaths);
  EXPECT_EQ(death.info.kind(), proto::ExitInfo::GROUP_REMOVED);
  EXPECT_THAT(death.info.message(), HasSubstr("its placement group was removed"));
  EXPECT_EQ(core->view().workers().exit_of(id)->kind(), proto::ExitInfo::GROUP_REMOVED);
  EXPECT_EQ(free_cpus(), 2);
  start_worker();
  EXPECT_EQ(take_grant().owner, 2u);
  give_back(lease, true);  // This comes too late and does no harm.
}

TEST_F(BundleTest, AProcessThatIsNeverReapedDoesNotHoldABundleForEver) {
  make(1);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand_in(0, 1));
  WorkerId id = start_worker();
  take_grant();
  return_bundles(1);
  sink.exits.clear();
  for (int i = 0; i < 3; ++i) pass(1100 * kMs);
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  EXPECT_EQ(RecordingSink::take(sink.deaths).id, id);
  EXPECT_EQ(free_cpus(), 1);
}

// It stays for what it owns, perhaps for long.
TEST_F(BundleTest, AWorkerThatHasDoneItsLastTaskInABundleDoesNotHoldIt) {
  make(1);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand_in(0, 1));
  start_worker();
  auto lease = take_grant();
  proto::LeaseReturn request;
  request.set_lease_id(lease.message.lease_id());
  request.set_worker_leaves(true);
  core->return_lease(lease.owner, request, now());
  return_bundles(1);
  EXPECT_EQ(free_cpus(), 1);
  EXPECT_TRUE(sink.exits.empty());
}

TEST_F(BundleTest, ATaskWhoseOwnerEndedHoldsItsBundleUntilItsProcessIsReaped) {
  make(1);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand_in(0, 1));
  WorkerId id = start_worker();
  take_grant();
  core->owner_closed(1, now());
  return_bundles(1);
  EXPECT_EQ(RecordingSink::take(sink.exits), id);
  EXPECT_EQ(free_cpus(), 0);
  reap(id, 0);
  RecordingSink::take(sink.deaths);
  EXPECT_EQ(free_cpus(), 1);
}

TEST_F(BundleTest, TheEndOfAJobLeavesItsBundlesToTheHead) {
  make(2);
  reserve(1, {{{"CPU", 1}}});
  core->job_finished(job(), now());
  core->job_over(job(), now());
  core->check_invariants();
  EXPECT_EQ(core->view().bundles().size(), 1u);
  // A detached group may be placed anew.
  reserve(1, {{{"CPU", 1}}}, 2);
}

// ---- what others hear

TEST_F(BundleTest, TheReportTellsWhatIsReservedAndWhatOfItIsInUse) {
  make(4);
  reserve(1, {{{"CPU", 1}}, {{"CPU", 2}}});
  want(1, demand_in(1, 1));
  start_worker();
  take_grant();
  proto::ResourceReport report;
  core->view().fill_report(&report);
  EXPECT_EQ(ResourceSet::from_proto(report.available()).get("CPU"), 1);
  EXPECT_EQ(ResourceSet::from_proto(report.reserved()).get("CPU"), 3);
  EXPECT_EQ(ResourceSet::from_proto(report.reserved_used()).get("CPU"), 1);
  const int64_t before = report.incarnation();
  want(1, demand_in(1, 1, {{"CPU", 1}}, 2));
  start_worker();
  take_grant();
  core->view().fill_report(&report);
  EXPECT_GT(report.incarnation(), before);
  EXPECT_EQ(ResourceSet::from_proto(report.reserved_used()).get("CPU"), 2);
}

TEST_F(BundleTest, ANodeTellsTheHeadWhichBundlesItHolds) {
  make(4);
  reserve(3, {{{"CPU", 1}}, {{"CPU", 2}}});
  want(1, demand_in(0, 1));
  start_worker();
  take_grant();
  return_bundles(3, {0});
  google::protobuf::RepeatedPtrField<proto::HeldBundle> held;
  core->view().bundles().fill(&held);
  ASSERT_EQ(held.size(), 1);  // The other one is as good as gone.
  EXPECT_EQ(held[0].group_id(), group().binary());
  EXPECT_EQ(held[0].index(), 1);
  EXPECT_EQ(held[0].epoch(), 3);
  EXPECT_EQ(ResourceSet::from_proto(held[0].resources()).get("CPU"), 2);
  sink.exits.clear();
}

TEST_F(BundleTest, ANodeThatDrainsKeepsItsBundlesAndTakesNoNewOnes) {
  make(2, 1);
  start_workers(1);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand(1));
  auto lease = take_grant();
  prepare(1, {{{"CPU", 1}}}, 2);
  core->drain({}, now());
  core->check_invariants();
  sink.revokes.clear();
  EXPECT_THAT(answer(1, 2), HasSubstr("leaving the cluster"));
  prepare(2, {{{"CPU", 1}}}, 2);
  EXPECT_THAT(answer(2, 2), HasSubstr("leaving the cluster"));
  EXPECT_EQ(core->view().busy_with(), "1 leased worker, 1 bundle");
  want(1, demand_in(0, 1));
  EXPECT_THAT(reported(), HasSubstr("its node is leaving the cluster"));
  give_back(lease);
  return_bundles(1);
  EXPECT_EQ(core->view().busy_with(), "");
}

TEST_F(BundleTest, ANodeThatStopsTakesNoBundles) {
  make(2);
  core->stop();
  prepare(1, {{{"CPU", 1}}});
  EXPECT_THAT(answer(1), HasSubstr("leaving the cluster"));
}

TEST_F(BundleTest, OnlySoManyEndedAttemptsAreRemembered) {
  BundleLine line;
  for (size_t i = 0; i <= BundleLine::kMaxEnded; ++i) line.end(group(i + 1), 1, "why");
  EXPECT_EQ(line.ended(group(1)), nullptr);
  EXPECT_NE(line.ended(group(2)), nullptr);
  line.end(group(2), 0, "an earlier one");
  EXPECT_EQ(line.ended(group(2))->epoch, 1);
}

}  // namespace
}  // namespace rt::node
