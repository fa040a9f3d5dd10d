// A head that was killed and starts again: groups that were created, half prepared, or lost.
#include "tests/unit/head/group_fixture.h"

namespace rt::head {
namespace {

class GroupRecoveryTest : public GroupTest {
 protected:
  proto::RegisterNodeRequest back(int n, JobId job) {
    auto request = holding(n);
    request.add_live_jobs()->set_job_id(job.binary());
    return request;
  }
};

TEST_F(GroupRecoveryTest, ACreatedGroupLivesOnWhenItsNodesComeBack) {
  add_node(1, {{"CPU", 2}});
  add_node(2, {{"CPU", 2}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 2}}, {{"CPU", 2}}}, proto::GroupSpec::PACK, "name");
  GroupId id = created_group(request);
  auto first = back(1, job), second = back(2, job);
  const int64_t version = group(id).info.version(), epoch = group(id).info.bundle_epochs(0);
  restart();
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_GT(group(id).info.version(), version);
  register_node(conn_of(1), first);
  register_node(conn_of(2), second);
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_EQ(group(id).info.bundle_epochs(0), epoch);
  EXPECT_EQ(core->view().cluster().find(node_id(1))->bundles_hold.get("CPU"), 2);
  EXPECT_TRUE(add_group(request, 70).ok());  // The answer may have been lost.
  EXPECT_EQ(news_states(70), std::vector{proto::GROUP_CREATED});
  EXPECT_EQ(
      add_group(group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name")).error().code,
      Code::kAlreadyExists);
  drop_pushes();
}

TEST_F(GroupRecoveryTest, HalfPreparedBundlesAreGivenBackAndTheOwnerRegistersAgain) {
  add_node(1, {{"CPU", 1}});
  add_node(2, {{"CPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}}, proto::GroupSpec::STRICT_SPREAD);
  const GroupId id = id_of(request);
  add_group(request);
  auto first = take(sink.prepares), second = take(sink.prepares);
  reserved(first);
  auto with_bundle = registration(first.node.node.data()[0], {{"CPU", 1}});
  with_bundle.add_live_jobs()->set_job_id(job.binary());
  hold(with_bundle, id, first.request.bundles(0).index(), first.request.epoch());
  auto without = registration(second.node.node.data()[0], {{"CPU", 1}});
  without.add_live_jobs()->set_job_id(job.binary());
  restart();
  EXPECT_EQ(core->view().groups().find(id), nullptr);
  register_node(conn_of(1), with_bundle);
  auto returned = take(sink.returns);
  EXPECT_EQ(returned.request.group_id(), id.binary());
  EXPECT_EQ(returned.request.epoch(), first.request.epoch());
  register_node(conn_of(2), without);
  EXPECT_TRUE(add_group(request).ok());
  auto again = take(sink.prepares);
  EXPECT_EQ(again.request.epoch(), (int64_t{2} << 32) + 1);
  EXPECT_GT(again.request.epoch(), first.request.epoch());
  reserved(again);
  reserve_all();
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  drop_pushes();
}

TEST_F(GroupRecoveryTest, BundlesThatWereReservedBeforeTheRestartAreTakenOverByTheRecord) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}});
  add_group(request);
  proto::PrepareBundlesReply ok;
  ok.set_ok(true);
  auto prepare = take(sink.prepares);
  answer_prepare(prepare, ok);
  // The record reached the disk, and the head was killed before it heard of that.
  auto [write, batch] = take(sink.persists);
  MemoryStorage::write(disk, batch);
  restart();
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
  auto here = registration(1, {{"CPU", 1}});
  here.add_live_jobs()->set_job_id(job.binary());
  hold(here, id_of(request), 0, prepare.request.epoch());
  register_node(conn_of(1), here);
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
  drop_pushes();
}

TEST_F(GroupRecoveryTest, ANamedGroupThatWaitedWaitsOn) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 2}}}, proto::GroupSpec::PACK, "name");
  add_group(request);
  auto first = back(1, job);
  restart();
  register_node(conn_of(1), first);
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_PENDING);
  drop_pushes();
  add_node(2, {{"CPU", 2}});
  reserve_all();
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
  drop_pushes();
}

TEST_F(GroupRecoveryTest, BundlesAreRescheduledOnlyWhenAllNodesAreBackOrGivenUp) {
  add_node(1, {{"CPU", 2}});
  add_node(2, {{"CPU", 2}});
  add_node(3, {{"CPU", 2}});
  JobId job = add_job();
  GroupId id = created_group(
      group_request(job, {{{"CPU", 2}}, {{"CPU", 2}}}, proto::GroupSpec::STRICT_SPREAD));
  std::set<int> holders{node_of(id, 0), node_of(id, 1)};
  const int spare = !holders.contains(1) ? 1 : !holders.contains(2) ? 2 : 3;
  std::map<int, proto::RegisterNodeRequest> all;
  for (int n : {1, 2, 3}) all[n] = back(n, job);
  holders.erase(1);
  const int forgetful = *holders.begin();
  const int other = 6 - spare - forgetful;
  restart();
  all[forgetful].clear_bundles();  // This node lost its bundles, so they look for nodes.
  register_node(conn_of(forgetful), all[forgetful]);
  EXPECT_EQ(group_state(id), proto::GROUP_RESCHEDULING);
  register_node(conn_of(spare), all[spare]);
  advance(100);
  EXPECT_TRUE(sink.prepares.empty());
  register_node(conn_of(other), all[other]);
  auto prepare = take(sink.prepares);
  reserved(prepare);
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  drop_pushes();
}

TEST_F(GroupRecoveryTest, ANodeThatStaysAwayLosesItsBundles) {
  add_node(1, {{"CPU", 1}});
  add_node(2, {{"CPU", 2}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 2}}}));
  auto first = back(1, job);
  restart();
  register_node(conn_of(1), first);
  drop_pushes();
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  answer_probes(HeadTest::refused());
  advance(options.settings.node_reconnect_grace_ms);
  EXPECT_EQ(group_state(id), proto::GROUP_RESCHEDULING);
  drop_pushes();
  add_node(3, {{"CPU", 2}});
  reserve_all();
  EXPECT_EQ(node_of(id, 0), 3);
  drop_pushes();
}

TEST_F(GroupRecoveryTest, ARemovedGroupDoesNotComeBack) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 2}}}));
  auto first = back(1, job);
  EXPECT_TRUE(remove_group(id).ok());
  sink.returns.clear();
  restart();
  register_node(conn_of(1), first);
  EXPECT_EQ(core->view().groups().find(id), nullptr);
  EXPECT_EQ(take(sink.returns).request.why().kind(), proto::ExitInfo::GROUP_REMOVED);
  drop_pushes();
}

TEST_F(GroupRecoveryTest, ACreatorThatHasNotHeardOfTheRemovalDoesNotBringTheGroupBack) {
  constexpr ConnId kOther = 70, kBack = 71;
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  auto unborn = group_request(job, {{{"CPU", 4}}}), created = group_request(job, {{{"CPU", 2}}});
  EXPECT_TRUE(add_group(unborn).ok());
  created_group(created);
  auto own = group_request(job, {{{"CPU", 8}}}), unknown = group_request(job, {{{"CPU", 1}}});
  EXPECT_TRUE(add_group(own).ok());
  for (const auto& request : {unborn, created, unknown})
    EXPECT_TRUE(remove_group(id_of(request), kOther).ok());
  EXPECT_TRUE(remove_group(id_of(own)).ok());
  sink.returns.clear();
  // The creator itself knows of the removal, so that no record is kept.
  EXPECT_FALSE(on_disk(id_of(own)));
  EXPECT_EQ(disk.tables["groups"].size(), 3u);
  auto first = back(1, job);
  for (int restarts = 0; restarts < 2; ++restarts) {
    restart();
    register_node(conn_of(1), first);
    for (const auto& request : {unborn, created, unknown}) {
      Answer<proto::Empty> again = add_group(request, kBack);
      ASSERT_FALSE(again.ok());
      EXPECT_EQ(again.error().code, Code::kNotFound);
      EXPECT_EQ(news_states(kBack), std::vector{proto::GROUP_REMOVED});
    }
    EXPECT_TRUE(sink.prepares.empty());
    drop_pushes();
  }
}

TEST_F(GroupRecoveryTest, AnActorInAGroupThatWasRemovedBeforeTheRestartFailsAtOnce) {
  constexpr ConnId kOther = 70;
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 2}}}));
  EXPECT_TRUE(remove_group(id, kOther).ok());
  auto first = back(1, job);
  restart();
  register_node(conn_of(1), first);
  auto request = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  request.mutable_spec()->mutable_creation()->set_group_id(id.binary());
  request.mutable_spec()->mutable_creation()->set_bundle_index(0);
  const ActorId late = create(request);
  const Actor* actor = core->view().actors().find(late);
  ASSERT_TRUE(actor);
  EXPECT_EQ(actor->info.state(), proto::ACTOR_DEAD);
  EXPECT_EQ(actor->info.death().kind(), proto::ExitInfo::GROUP_REMOVED);
  EXPECT_EQ(actor->info.death().message(), "its placement group " + id.hex() + " was removed");
  sink.returns.clear();
  drop_pushes();
}

TEST_F(GroupRecoveryTest, RecordsOfRemovalsAreErasedBeyondALimit) {
  options.settings.removed_groups_kept = 2;
  restart();
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  std::vector<GroupId> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(created_group(group_request(job, {{{"CPU", 2}}})));
    EXPECT_TRUE(remove_group(ids.back(), 70).ok());
    sink.returns.clear();
    drop_pushes();
  }
  EXPECT_EQ(std::vector({on_disk(ids[0]), on_disk(ids[1]), on_disk(ids[2]), on_disk(ids[3])}),
            std::vector({false, false, true, true}));
}

TEST_F(GroupRecoveryTest, AGroupWhoseJobEndedMeanwhileGoes) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 2}}}));
  auto here = holding(1);  // The node does not name the job as live.
  restart();
  register_node(conn_of(1), here);
  EXPECT_EQ(group_state(id), proto::GROUP_REMOVED);
  EXPECT_FALSE(on_disk(id));
  EXPECT_FALSE(sink.returns.empty());
  sink.returns.clear();
  drop_pushes();
}

TEST_F(GroupRecoveryTest, TheLaterOfTwoGroupsWithOneNameIsRight) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  auto first = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  created_group(first);
  auto record = disk.tables["groups"];
  EXPECT_TRUE(remove_group(id_of(first)).ok());
  take(sink.returns);
  drop_pushes();
  advance(10);
  auto second = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  created_group(second);
  for (const auto& [key, value] : record) disk.tables["groups"][key] = value;
  restart();
  EXPECT_TRUE(core->view().groups().find(id_of(first)) == nullptr ||
              group_state(id_of(first)) == proto::GROUP_REMOVED);
  EXPECT_EQ(group_state(id_of(second)), proto::GROUP_CREATED);
  EXPECT_FALSE(on_disk(id_of(first)));
  drop_pushes();
}

TEST_F(GroupRecoveryTest, ADamagedRecordStopsTheStartWithItsName) {
  disk.tables["groups"][make_group_id(job_id_from_int(1), rng).binary()] = "\xff\xff nonsense";
  RecordingSink other;
  HeadCore fresh(options, other);
  Status loaded = fresh.load(disk.tables, now);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("groups"), std::string::npos);
}

}  // namespace
}  // namespace rt::head
