// Actors in bundles of placement groups, and actors that have ended and are asked for again.
#include "bundle_fixture.h"

namespace rt::node {
namespace {

using testing::HasSubstr;

class BundleActors : public BundleTest {
 protected:
  // Creates an actor that then lives, and returns its worker.
  WorkerId let_live(const proto::CreateActorRequest& request) {
    create(request);
    const WorkerId id = start_worker();
    EXPECT_EQ(RecordingSink::take(sink.starts), id);
    constructed(request);
    EXPECT_TRUE(RecordingSink::take(sink.created).reply.ok());
    return id;
  }
};

TEST_F(BundleActors, AnActorLivesInItsBundle) {
  make(4);
  reserve(1, {{{"CPU", 1}}, {{"CPU", 2}}});
  WorkerId id = let_live(actor_in(1, 1, {{"CPU", 2}}, {{"CPU", 1}}));
  EXPECT_EQ(core->view().worker(id)->room, (RoomKey{group(), 1}));
  EXPECT_EQ(free_in(1), 1);
  EXPECT_EQ(free_cpus(), 1);
  want(1, demand_in(1, 1));
  start_worker();
  EXPECT_EQ(room_of(take_grant()), 1);
}

TEST_F(BundleActors, AnActorIsToldTheDevicesOfItsBundle) {
  make_with({{"CPU", 2}, {"GPU", 2}});
  want(1, demand(1, {{"GPU", 1}}));
  start_worker();
  take_grant();
  reserve(1, {{{"GPU", 1}}});
  create(actor_in(0, 1, {{"GPU", 1}}, {{"GPU", 1}}));
  EXPECT_TRUE(sink.spawns.front().kind.gpu);
  start_worker();
  RecordingSink::take(sink.starts);
  EXPECT_EQ(sink.last_gpus, std::vector<std::string>{"1"});
}

// It needs a CPU to be placed, and holds none afterwards.
TEST_F(BundleActors, TheDefaultActorMustFitIntoItsBundle) {
  make_with({{"CPU", 4}, {"R", 4}});
  reserve(1, {{{"R", 1}}, {{"CPU", 1}}});
  create(actor_in(0, 1, {{"CPU", 1}}, {}));
  auto refused = RecordingSink::take(sink.created).reply;
  EXPECT_TRUE(refused.no_resources());
  EXPECT_THAT(refused.failure().message(), HasSubstr("bundle 0 of placement group"));
  let_live(actor_in(1, 1, {{"CPU", 1}}, {}));
  EXPECT_EQ(free_in(1), 1);
  let_live(actor_in(1, 2, {{"CPU", 1}}, {}));
}

TEST_F(BundleActors, WithoutItsBundleTheHeadIsToldToLookElsewhere) {
  make(4);
  create(actor_in(0, 1, {{"CPU", 1}}, {}));
  auto refused = RecordingSink::take(sink.created).reply;
  EXPECT_TRUE(refused.no_resources());
  EXPECT_THAT(refused.failure().message(), HasSubstr("it is not here yet"));
}

TEST_F(BundleActors, AnyBundleMeansOneThatHasRoom) {
  make(4);
  reserve(1, {{{"CPU", 1}}, {{"CPU", 1}}});
  WorkerId first = let_live(actor_in(-1, 1, {{"CPU", 1}}, {{"CPU", 1}}));
  WorkerId second = let_live(actor_in(-1, 2, {{"CPU", 1}}, {{"CPU", 1}}));
  EXPECT_EQ(core->view().worker(first)->room.index, 0);
  EXPECT_EQ(core->view().worker(second)->room.index, 1);
}

TEST_F(BundleActors, AWaitingActorHasLeasesOfItsBundleRevokedAndNoOthers) {
  make(2, 2);
  start_workers(2);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand(1));
  take_grant();
  want(2, demand_in(0, 1));
  auto inside = take_grant();
  create(actor_in(0, 1, {{"CPU", 1}}, {}));
  EXPECT_THAT(reported(), HasSubstr("its CPU is in use"));
  pass(110 * kMs);
  EXPECT_EQ(RecordingSink::take(sink.revokes).leases.front(), inside.message.lease_id());
  pass(400 * kMs);
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.no_resources());
}

TEST_F(BundleActors, StartingActorsInBundlesAreNotReportedAsFree) {
  make(2);
  reserve(1, {{{"CPU", 1}}});
  create(actor_in(0, 1, {{"CPU", 1}}, {}));
  proto::ResourceReport report;
  core->view().fill_report(&report);
  EXPECT_EQ(ResourceSet::from_proto(report.available()).get("CPU"), 1);
  start_worker();
  sink.starts.clear();
  core->view().fill_report(&report);
  EXPECT_EQ(ResourceSet::from_proto(report.available()).get("CPU"), 1);
}

// ---- return

TEST_F(BundleActors, AReturnKillsActorsWhateverTheyDo) {
  make(4);
  reserve(1, {{{"CPU", 4}}});
  auto living = actor_in(0, 1, {{"CPU", 1}}, {{"CPU", 1}});
  WorkerId alive = let_live(living);
  auto starting = actor_in(0, 2, {{"CPU", 1}}, {});
  create(starting);
  WorkerId in_constructor = start_worker();
  sink.starts.clear();
  create(actor_in(0, 3, {{"CPU", 1}}, {}));  // Waits for a process.
  create(actor_in(0, 4, {{"CPU", 2}}, {}));  // Waits for a CPU.
  return_bundles(1);
  for (int i = 0; i < 2; ++i) {
    auto waiting = RecordingSink::take(sink.created).reply;
    EXPECT_EQ(waiting.failure().kind(), proto::ExitInfo::GROUP_REMOVED);
    EXPECT_FALSE(waiting.no_resources());  // It has no other place to go.
  }
  EXPECT_EQ(sink.exits.size(), 2u);
  sink.exits.clear();
  reap(alive, SIGKILL);
  EXPECT_EQ(RecordingSink::take(sink.actor_deaths).death().kind(), proto::ExitInfo::GROUP_REMOVED);
  EXPECT_EQ(free_cpus(), 0);
  reap(in_constructor, SIGKILL);
  EXPECT_EQ(RecordingSink::take(sink.created).reply.failure().kind(),
            proto::ExitInfo::GROUP_REMOVED);
  EXPECT_EQ(free_cpus(), 4);
  EXPECT_TRUE(core->view().actors().empty());
  sink.deaths.clear();
  sink.spawns.clear();
}

TEST_F(BundleActors, AnActorWhoseBundleGoesForAnotherReasonIsPlacedAgain) {
  make(2, 1);
  start_workers(1);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand_in(0, 1));
  take_grant();
  create(actor_in(0, 1, {{"CPU", 1}}, {}));
  return_bundles(1, {}, 1, proto::ExitInfo::NODE_DIED);
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.no_resources());
  sink.exits.clear();
  sink.spawns.clear();  // A warm worker replaces the one that ends.
}

TEST_F(BundleActors, AReturnDoesNotWaitForAnActorThatWasAskedToFinishItsWork) {
  make(1);
  reserve(1, {{{"CPU", 1}}});
  auto request = actor_in(0, 1, {{"CPU", 1}}, {});
  WorkerId id = let_live(request);
  proto::KillWorkerRequest leave;
  leave.set_actor_id(request.spec().actor_id());
  leave.set_why(proto::ExitInfo::OUT_OF_SCOPE);
  leave.set_graceful(true);
  core->kill(leave, now());
  core->worker_leaves(id, NodeCore::Leaving::kHasHeard, now());
  sink.exits.clear();
  return_bundles(1);
  sink.exits.clear();
  pass(300 * kMs);
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  reap(id, SIGKILL);
  EXPECT_EQ(RecordingSink::take(sink.actor_deaths).death().kind(), proto::ExitInfo::GROUP_REMOVED);
  sink.deaths.clear();
  EXPECT_EQ(free_cpus(), 1);
}

TEST_F(BundleActors, ABlockedActorTakesItsCpuBackInItsBundle) {
  make(2);
  reserve(1, {{{"CPU", 1}}});
  WorkerId id = let_live(actor_in(0, 1, {{"CPU", 1}}, {{"CPU", 1}}));
  core->set_blocked(id, true, now());
  core->check_invariants();
  EXPECT_EQ(free_in(0), 1);
  EXPECT_EQ(free_cpus(), 1);
  core->set_blocked(id, false, now());
  EXPECT_EQ(free_in(0), 0);
}

TEST_F(BundleActors, AFailedConstructorHoldsTheBundleUntilItsProcessIsReaped) {
  make(1);
  reserve(1, {{{"CPU", 1}}});
  auto request = actor_in(0, 1, {{"CPU", 1}}, {});
  create(request);
  WorkerId id = start_worker();
  sink.starts.clear();
  core->actor_start_done(ActorId::from_binary(request.spec().actor_id()), 1,
                         proto::CreateActorReply(), now());
  sink.created.clear();
  sink.kills.clear();
  return_bundles(1);
  EXPECT_EQ(free_cpus(), 0);
  reap(id, SIGKILL);
  EXPECT_EQ(free_cpus(), 1);
  sink.deaths.clear();
}

// ---- an incarnation is started once

TEST_F(BundleActors, AnIncarnationThatHasEndedHereIsNotStartedAgain) {
  make(2);
  auto request = actor(1, {{"CPU", 1}}, {});
  WorkerId id = let_live(request);
  core->worker_disconnected(id, now());
  sink.kills.clear();
  reap(id, SIGSEGV);
  sink.actor_deaths.clear();
  sink.deaths.clear();
  create(request);  // By a head that has restarted, or has not heard of the end.
  auto again = RecordingSink::take(sink.created);
  EXPECT_EQ(again.epoch, 1);
  EXPECT_FALSE(again.reply.ok());
  EXPECT_FALSE(again.reply.no_resources());
  EXPECT_EQ(again.reply.failure().signal(), SIGSEGV);
  EXPECT_EQ(sink.rest(), "");
  request.set_epoch(2);
  let_live(request);
}

TEST_F(BundleActors, AnEarlierIncarnationIsNotStartedAfterALaterOneHasEnded) {
  make(2);
  auto request = actor(1, {{"CPU", 1}}, {});
  request.set_epoch(5);
  WorkerId id = let_live(request);
  reap(id, SIGKILL);
  sink.actor_deaths.clear();
  sink.deaths.clear();
  request.set_epoch(4);
  create(request);
  EXPECT_THAT(RecordingSink::take(sink.created).reply.failure().message(),
              HasSubstr("a later incarnation"));
}

TEST_F(BundleActors, AFailedConstructorIsNotRunAgain) {
  make(2);
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  WorkerId id = start_worker();
  sink.starts.clear();
  proto::CreateActorReply raised;
  raised.mutable_failure()->set_creation_error("pickled");
  core->actor_start_done(ActorId::from_binary(request.spec().actor_id()), 1, raised, now());
  sink.created.clear();
  sink.kills.clear();
  create(request);
  EXPECT_EQ(RecordingSink::take(sink.created).reply.failure().creation_error(), "pickled");
  reap(id, SIGKILL);
  sink.deaths.clear();
}

TEST_F(BundleActors, AnActorThatNeverHadAProcessMayBeAskedForAgain) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  auto lease = take_grant();
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  pass(600 * kMs);
  sink.revokes.clear();
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.no_resources());
  give_back(lease);
  let_live(request);
}

TEST_F(BundleActors, OnlySoManyEndsOfActorsAreRemembered) {
  ActorEnds ends;
  auto id = [&](size_t n) { return make_actor_id(job(), n, 1); };
  proto::ExitInfo small, large;
  large.set_creation_error(std::string(ActorEnds::kMaxBytes, 'x'));
  for (size_t i = 0; i <= ActorEnds::kMaxEnds; ++i) ends.record(id(i), 1, small);
  EXPECT_EQ(ends.find(id(0)), nullptr);
  EXPECT_NE(ends.find(id(1)), nullptr);
  ends.record(id(1), 2, large);
  EXPECT_EQ(ends.find(id(1))->epoch, 2);
  EXPECT_NE(ends.find(id(2)), nullptr);
  ends.record(id(1), 1, small);
  EXPECT_EQ(ends.find(id(1))->epoch, 2);
  ends.record(id(5000), 1, large);  // Both together would be too much.
  EXPECT_EQ(ends.find(id(1)), nullptr);
  EXPECT_NE(ends.find(id(5000)), nullptr);
}

}  // namespace
}  // namespace rt::node
