// Leases in bundles of placement groups.
#include "bundle_fixture.h"

namespace rt::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BundleLeases : public BundleTest {
 protected:
  static std::vector<std::string> gpus_of(const RecordingSink::Grant& grant) {
    return {grant.message.gpu_ids().begin(), grant.message.gpu_ids().end()};
  }
  // A node with bundle 0 of 1 CPU and bundle 1 of 2 CPUs, and 1 CPU besides; with workers.
  void make_bundles() {
    make(4, 4);
    start_workers(4);
    reserve(1, {{{"CPU", 1}}, {{"CPU", 2}}});
  }
};

TEST_F(BundleLeases, ADemandIsServedFromItsBundleAndAnyOtherFromTheNode) {
  make_bundles();
  want(1, demand_in(1, 5));
  auto a = take_grant(), b = take_grant();
  EXPECT_EQ(room_of(a), 1);
  EXPECT_EQ(room_of(b), 1);
  EXPECT_EQ(free_in(1), 0);
  EXPECT_EQ(free_in(0), 1);
  want(2, demand(5));
  auto outside = take_grant();
  EXPECT_EQ(room_of(outside), -1);
  EXPECT_EQ(free_cpus(), 0);
  EXPECT_EQ(sink.rest(), "");
  give_back(a);
  EXPECT_EQ(room_of(take_grant()), 1);
  give_back(outside);
  EXPECT_EQ(room_of(take_grant()), -1);
}

TEST_F(BundleLeases, AnyBundleOfTheGroupMeansTheLowestThatHasRoom) {
  make_bundles();
  reserve(1, {{{"CPU", 1}}}, 2);
  want(1, demand_in(-1, 5));
  std::vector<int> rooms;
  while (!sink.grants.empty()) rooms.push_back(room_of(take_grant()));
  EXPECT_THAT(rooms, ElementsAre(0, 1, 1));
  EXPECT_EQ(free_in(0, "CPU", 2), 1);  // The bundle of another group is left alone.
}

TEST_F(BundleLeases, AnyBundleMeansOneThatIsLargeEnough) {
  make_bundles();
  want(1, demand_in(-1, 1, {{"CPU", 2}}));
  EXPECT_EQ(room_of(take_grant()), 1);
}

TEST_F(BundleLeases, ProcessesForAnyBundleAreStartedForAllThatHaveRoom) {
  make(4);
  reserve(1, {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 1}}});
  want(1, demand_in(-1, 5));
  EXPECT_EQ(sink.spawns.size(), 3u);
  start_workers(3);
  for (int room : {0, 1, 2}) EXPECT_EQ(room_of(take_grant()), room);
}

TEST_F(BundleLeases, ADemandWaitsForABundleThatComesLaterAndWhenItHasGone) {
  make(2, 2);
  start_workers(2);
  want(1, demand_in(0, 1));
  want(2, demand_in(-1, 1));
  EXPECT_THAT(reported(),
              HasSubstr("bundle 0 of placement group " + group().hex() + ": it is not here yet"));
  EXPECT_THAT(reported(),
              HasSubstr("a bundle of placement group " + group().hex() + ": none is here yet"));
  pass(2000 * kMs);
  EXPECT_EQ(sink.rest(), "");
  reserve(1, {{{"CPU", 2}}});
  auto a = take_grant(), b = take_grant();
  EXPECT_EQ(reported(), "");
  want(1, demand_in(0, 1));
  return_bundles(1);
  EXPECT_THAT(reported(), HasSubstr("it is being given back"));
  sink.exits.clear();
  for (const auto& grant : {a, b}) reap(worker_of(grant), SIGKILL);
  sink.deaths.clear();
  sink.spawns.clear();
  EXPECT_THAT(reported(), HasSubstr("it is not here yet"));
}

// The head may still give the bundle back, because another node refuses or its record is not on
// disk.
TEST_F(BundleLeases, ADemandWhoseGroupIsNotCreatedIsShownAndNotServed) {
  make(2, 2);
  start_workers(2);
  auto d = demand_in(0, 1);
  d.clear_group_epoch();
  want(1, d);
  want(2, demand_in(-1, 1, {{"CPU", 1}}, 2));
  reserve(1, {{{"CPU", 1}}});
  auto placed = take_grant();
  EXPECT_EQ(placed.owner, 2u);
  give_back(placed);
  EXPECT_THAT(reported(), HasSubstr("bundle 0 of placement group " + group().hex() +
                                    ": the group has no place yet, or was removed"));
  pass(1200 * kMs);
  EXPECT_EQ(sink.rest(), "");
  // It keeps nothing from others, however long it waits.
  want(2, demand_in(-1, 1, {{"CPU", 1}}, 2));
  auto other = take_grant();
  pass(200 * kMs);
  EXPECT_EQ(sink.rest(), "");
  give_back(other);
  d.set_group_epoch(1);
  want(1, d);
  EXPECT_EQ(take_grant().owner, 1u);
}

// A group that has lost a bundle may get a second one on the node that holds another.
TEST_F(BundleLeases, NothingIsGrantedInABundleOfALaterAttemptThanTheOwnerKnows) {
  make(4, 4);
  start_workers(4);
  reserve(1, {{{"CPU", 1}}});
  prepare_some(2, {{1, {{"CPU", 1}}}});
  EXPECT_EQ(answer(2), "");
  auto any = demand_in(-1, 2);
  any.set_group_epoch(1);
  want(1, any);
  EXPECT_EQ(room_of(take_grant()), 0);
  auto named = demand_in(1, 1, {{"CPU", 1}}, 2);
  named.set_group_epoch(1);
  want(2, named);
  EXPECT_THAT(reported(),
              HasSubstr("bundle 1 of placement group " + group().hex() + ": it is not here yet"));
  EXPECT_THAT(reported(), HasSubstr("the CPU of those here is in use"));
  pass(2000 * kMs);
  EXPECT_EQ(sink.rest(), "");
  named.set_group_epoch(2);
  want(2, named);
  EXPECT_EQ(room_of(take_grant()), 1);
}

TEST_F(BundleLeases, TheReportSaysInWhichBundleADemandWaitsAndForWhat) {
  make_bundles();
  want(1, demand_in(0, 3));
  take_grant();
  want(2, demand_in(-1, 1, {{"CPU", 3}}));
  want(3, demand_in(0, 1, {{"CPU", 2}}));
  const std::string name = group().hex();
  EXPECT_THAT(reported(),
              HasSubstr("2 in 0: bundle 0 of placement group " + name + ": its CPU is in use\n"));
  EXPECT_THAT(reported(), HasSubstr("1 in -1: a bundle of placement group " + name +
                                    ": none that is here has {'CPU': 3.0}\n"));
  EXPECT_THAT(reported(), HasSubstr("1 in 0: bundle 0 of placement group " + name +
                                    ": it has only {'CPU': 1.0}\n"));
  want(2, demand_in(-1, 4));
  take_grant();
  take_grant();
  EXPECT_THAT(reported(), HasSubstr("2 in -1: a bundle of placement group " + name +
                                    ": the CPU of those here is in use\n"));
  proto::ResourceReport report;
  core->view().fill_report(&report);
  for (const auto& waits : report.demands()) EXPECT_EQ(waits.group_id(), group().binary());
}

TEST_F(BundleLeases, ADemandInAGroupIsNeitherSentAwayNorCalledInfeasible) {
  make(1, 1);
  start_workers(1);
  core->node_changed(peer(1, {{"CPU", 8}}, {{"CPU", 8}}));
  want(1, demand_in(0, 1, {{"CPU", 2}}));
  auto spread = demand_in(-1, 1, {{"CPU", 100}}, 2);
  spread.set_strategy(proto::SPREAD);
  want(1, spread);
  pass(2000 * kMs);
  EXPECT_EQ(core->view().leases().waiting_tasks(), (std::pair<int64_t, int64_t>(2, 0)));
  proto::ResourceReport report;
  core->view().fill_report(&report);
  for (const auto& waits : report.demands()) EXPECT_FALSE(waits.infeasible());
}

TEST_F(BundleLeases, AHardConstraintThatExcludesTheNodeOfTheBundleLetsTheDemandWait) {
  make_bundles();
  core->node_changed(peer(1, {{"CPU", 8}}, {{"CPU", 8}}));
  auto d = demand_in(0, 1);
  auto* rule = d.mutable_constraint()->mutable_hard()->add_rules();
  rule->set_key("zone");
  rule->add_values("b");
  d.set_no_spill(true);
  want(1, d);
  pass(1200 * kMs);
  EXPECT_EQ(sink.rest(), "");
  EXPECT_THAT(reported(), HasSubstr("this one does not match"));
  // A wish excludes nothing.
  auto wish = demand_in(0, 1, {{"CPU", 1}}, 2);
  *wish.mutable_constraint()->mutable_preferred() = d.constraint().hard();
  want(1, wish);
  auto wished = take_grant();
  EXPECT_EQ(room_of(wished), 0);
  give_back(wished);
  auto soft = demand_in(0, 1, {{"CPU", 1}}, 3);
  soft.mutable_constraint()->set_node_id(peer(1, {}, {}).node_id());
  soft.mutable_constraint()->set_soft(true);
  want(1, soft);
  EXPECT_EQ(room_of(take_grant()), 0);
}

TEST_F(BundleLeases, AHardConstraintIsComparedWithTheLabelsOfThisNode) {
  settings.prestart_workers = 0;
  NodeIdentity me;
  Rng rng(7);
  me.id = NodeId::random(rng);
  me.ip = "10.0.0.1";
  me.total = resources_of({{"CPU", 2}});
  me.labels["zone"] = "b";
  core = std::make_unique<NodeCore>(sink, settings, me);
  core->start(now());
  reserve(1, {{{"CPU", 1}}});
  auto d = demand_in(0, 1);
  auto* rule = d.mutable_constraint()->mutable_hard()->add_rules();
  rule->set_key("zone");
  rule->add_values("b");
  want(1, d);
  start_worker();
  EXPECT_EQ(room_of(take_grant()), 0);
}

// ---- CPUs of blocked tasks

TEST_F(BundleLeases, ABlockedTaskLendsItsCpuWithinItsBundleOnly) {
  make(2, 2);
  start_workers(2);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand_in(0, 1));
  auto outer = take_grant();
  want(2, demand(2));
  auto outside = take_grant();
  core->set_blocked(worker_of(outer), true, now());
  core->check_invariants();
  EXPECT_EQ(sink.rest(), "");
  EXPECT_EQ(free_cpus(), 0);
  EXPECT_EQ(free_in(0), 1);
  want(3, demand_in(0, 1));
  start_worker();
  auto inner = take_grant();
  EXPECT_EQ(room_of(inner), 0);
  core->set_blocked(worker_of(outer), false, now());
  core->check_invariants();
  EXPECT_EQ(free_in(0), -1);
  EXPECT_EQ(free_cpus(), 0);
  proto::ResourceReport report;
  core->view().fill_report(&report);
  EXPECT_EQ(ResourceSet::from_proto(report.reserved_used()).get("CPU"), 1);  // Not two of one.
  give_back(inner);
  EXPECT_EQ(free_in(0), 0);
  core->set_blocked(worker_of(outside), true, now());
  EXPECT_EQ(room_of(take_grant()), -1);  // The other task of owner 2.
  give_back(outer);
  EXPECT_EQ(free_in(0), 1);
}

TEST_F(BundleLeases, ABundleWithDebtsIsGivenBackWhole) {
  make(1, 1);
  start_workers(1);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand_in(0, 1));
  auto outer = take_grant();
  core->set_blocked(worker_of(outer), true, now());
  want(2, demand_in(0, 1));
  start_worker();
  auto inner = take_grant();
  core->set_blocked(worker_of(outer), false, now());
  return_bundles(1);
  sink.exits.clear();
  reap(worker_of(inner), 0);
  EXPECT_EQ(free_cpus(), 0);
  reap(worker_of(outer), 0);
  EXPECT_EQ(free_cpus(), 1);
  sink.deaths.clear();
  sink.spawns.clear();
}

// ---- fairness

TEST_F(BundleLeases, LeasesAreRevokedOnlyInTheBundleThatADemandWaitsFor) {
  make_bundles();
  want(1, demand(1));
  take_grant();
  want(1, demand_in(1, 2, {{"CPU", 1}}, 2));
  auto a = take_grant(), b = take_grant();
  want(2, demand_in(0, 1, {{"CPU", 1}}, 3));
  take_grant();
  want(3, demand_in(1, 1));
  pass(110 * kMs);
  auto revoked = RecordingSink::take(sink.revokes);
  EXPECT_EQ(revoked.owner, 1u);
  ASSERT_EQ(revoked.leases.size(), 1u);
  const bool first = revoked.leases[0] == a.message.lease_id();
  EXPECT_TRUE(first || revoked.leases[0] == b.message.lease_id());
  pass(50 * kMs);
  give_back(first ? a : b);
  EXPECT_EQ(take_grant().owner, 3u);
}

TEST_F(BundleLeases, ADemandForAnyBundleRevokesLeasesWhereThatHelps) {
  make_bundles();
  // Nobody gives the CPU of bundle 0 back.
  auto holder = actor_in(0, 1, {{"CPU", 1}}, {{"CPU", 1}});
  create(holder);
  sink.starts.clear();
  constructed(holder);
  sink.created.clear();
  sink.spawns.clear();
  want(1, demand_in(1, 2));
  take_grant();
  take_grant();
  want(2, demand_in(-1, 1));
  pass(110 * kMs);
  EXPECT_EQ(RecordingSink::take(sink.revokes).owner, 1u);
  pass(110 * kMs);
}

TEST_F(BundleLeases, AStarvedDemandKeepsSmallerOnesOutOfItsBundleOnly) {
  make(3, 3);
  start_workers(3);
  reserve(1, {{{"CPU", 2}}});
  want(1, demand_in(0, 100));
  auto a = take_grant(), b = take_grant();
  want(2, demand_in(0, 1, {{"CPU", 2}}));
  pass(1100 * kMs);
  sink.revokes.clear();
  give_back(a);  // Owner 1 does not get it again.
  EXPECT_EQ(sink.rest(), "");
  want(3, demand(1));
  auto outside = take_grant();  // The node's own room is another matter.
  EXPECT_EQ(room_of(outside), -1);
  give_back(b);
  EXPECT_EQ(take_grant().owner, 2u);
}

TEST_F(BundleLeases, AStarvedDemandOfTheNodeKeepsNothingInBundles) {
  make(3, 3);
  start_workers(3);
  reserve(1, {{{"CPU", 1}}});
  want(1, demand(1));
  take_grant();
  want(2, demand(1, {{"CPU", 2}}));
  pass(1100 * kMs);
  sink.revokes.clear();
  want(3, demand_in(0, 1));
  EXPECT_EQ(take_grant().owner, 3u);
}

// All that the starved demand of this bundle lacks is held in another room, and does not come back.
TEST_F(BundleLeases, WhatIsHeldInOtherRoomsDoesNotCountAsComingBack) {
  make_with({{"CPU", 4}, {"R", 3}}, 5);
  start_workers(5);
  reserve(1, {{{"CPU", 2}, {"R", 1}}, {{"CPU", 1}}});
  auto holder = actor_in(0, 1, {{"R", 1}}, {{"R", 1}});
  create(holder);
  sink.starts.clear();
  constructed(holder);
  sink.created.clear();
  sink.spawns.clear();
  want(1, demand(1, {{"R", 1}}));
  take_grant();
  create(actor(2, {{"R", 1}}, {}));  // Holds it until it is constructed.
  sink.starts.clear();
  sink.spawns.clear();
  want(2, demand_in(0, 1, {{"CPU", 2}, {"R", 1}}));
  pass(1100 * kMs);
  sink.revokes.clear();
  want(3, demand_in(0, 1));
  EXPECT_EQ(take_grant().owner, 3u);
}

// ---- GPUs

TEST_F(BundleLeases, TasksInABundleShareItsDevices) {
  make_with({{"CPU", 4}, {"GPU", 4}});
  want(9, demand(1, {{"GPU", 1}}));
  start_worker();
  EXPECT_THAT(gpus_of(take_grant()), ElementsAre("0"));
  reserve(1, {{{"GPU", 2}}});
  EXPECT_EQ(core->view().bundles().find({group(), 0})->devices.size(), 2u);
  want(1, demand_in(0, 4, {{"GPU", 0.5}}));
  start_workers(4);
  std::vector<std::vector<std::string>> devices;
  for (int i = 0; i < 4; ++i) devices.push_back(gpus_of(take_grant()));
  EXPECT_THAT(devices,
              ElementsAre(ElementsAre("1"), ElementsAre("1"), ElementsAre("2"), ElementsAre("2")));
  // The node has one device left.
  want(2, demand(2, {{"GPU", 1}}));
  start_worker();
  EXPECT_THAT(gpus_of(take_grant()), ElementsAre("3"));
  sink.spawns.clear();
}

TEST_F(BundleLeases, ABundleMayHoldAPartOfADevice) {
  make_with({{"CPU", 4}, {"GPU", 1}});
  reserve(1, {{{"GPU", 0.5}}, {{"GPU", 0.5}}});
  want(1, demand_in(1, 3, {{"GPU", 0.25}}));
  start_workers(2);
  EXPECT_THAT(gpus_of(take_grant()), ElementsAre("0"));
  EXPECT_THAT(gpus_of(take_grant()), ElementsAre("0"));
  EXPECT_EQ(sink.rest(), "");
  EXPECT_EQ(free_in(0, "GPU"), 0.5);
}

TEST_F(BundleLeases, ATaskInABundleNeedsItsDeviceInOnePiece) {
  make_with({{"CPU", 4}, {"GPU", 2}});
  reserve(1, {{{"GPU", 2}}});
  want(1, demand_in(0, 2, {{"GPU", 0.6}}));
  start_workers(2);
  take_grant();
  take_grant();
  want(2, demand_in(0, 1, {{"GPU", 0.8}}));
  EXPECT_EQ(sink.rest(), "");
  EXPECT_THAT(reported(), HasSubstr("no device of it has enough free"));
}

TEST_F(BundleLeases, ABundleGivesOutNoMoreOfADeviceThanItHas) {
  make_with({{"GPU", 2}});
  reserve(1, {{{"GPU", 1.5}}});
  want(1, demand_in(0, 2, {{"GPU", 0.75}}));
  start_workers(2);
  EXPECT_THAT(gpus_of(take_grant()), ElementsAre("0"));
  EXPECT_EQ(sink.rest(), "");  // It has only half of the other one.
}

TEST_F(BundleLeases, PartsOfDevicesArePackedTightly) {
  make_with({{"GPU", 2}});
  reserve(1, {{{"GPU", 0.4}}, {{"GPU", 0.4}}, {{"GPU", 0.6}}, {{"GPU", 0.6}}});
}

TEST_F(BundleLeases, LeasesAreRevokedForDevicesInOnePiece) {
  make_with({{"CPU", 4}, {"GPU", 2}});
  want(1, demand(1, {{"GPU", 0.5}}));
  start_worker();
  auto part = take_grant();
  prepare(1, {{{"GPU", 0.6}}, {{"GPU", 0.6}}});
  pass(110 * kMs);  // In sum 1.5 are free, but not in these pieces.
  EXPECT_EQ(RecordingSink::take(sink.revokes).leases.front(), part.message.lease_id());
  give_back(part);
  EXPECT_EQ(answer(1), "");
}

// Libraries look once for the devices that their process may use.
TEST_F(BundleLeases, TasksWithAndWithoutAGpuNeverShareAProcess) {
  make_with({{"CPU", 2}, {"GPU", 1}}, 1);
  WorkerId plain = start_worker();
  want(1, demand(1, {{"GPU", 1}}));
  EXPECT_TRUE(sink.spawns.front().kind.gpu);
  WorkerId with_gpu = start_worker();
  auto lease = take_grant();
  EXPECT_EQ(worker_of(lease), with_gpu);
  give_back(lease);
  want(1, demand(0, {{"GPU", 1}}));
  want(1, demand(2, {{"CPU", 1}}, 2));
  auto cpu_only = take_grant();
  EXPECT_EQ(worker_of(cpu_only), plain);
  EXPECT_FALSE(sink.spawns.front().kind.gpu);
  EXPECT_NE(start_worker(), with_gpu);
  take_grant();
}

TEST_F(BundleLeases, ADemandWithoutAValidGroupIdIsRefused) {
  make(1);
  auto d = demand_in(0, 1);
  d.set_group_id("short");
  want(1, d);
  auto notice = RecordingSink::take(sink.notices).message;
  EXPECT_TRUE(notice.fatal());
  EXPECT_THAT(notice.message(), HasSubstr("placement group id"));
}

}  // namespace
}  // namespace rt::node
