// Actors in placement groups: which bundle they get, how they wait for it and end with it.
#include "tests/unit/head/group_fixture.h"

namespace rt::head {
namespace {

class GroupActorsTest : public GroupTest {
 protected:
  proto::RegisterActorRequest in_group(JobId job, const GroupId& group, int bundle,
                                       const Amounts& placement, const Amounts& held) {
    auto request = actor_request(job, placement, held);
    request.mutable_spec()->mutable_creation()->set_group_id(group.binary());
    request.mutable_spec()->mutable_creation()->set_bundle_index(bundle);
    return request;
  }
  proto::RegisterActorRequest in_group(JobId job, const GroupId& group, int bundle, double cpus) {
    return in_group(job, group, bundle, {{"CPU", cpus}}, {{"CPU", cpus}});
  }
};

TEST_F(GroupActorsTest, AnActorGoesToTheNodeOfItsBundleAndClaimsNothingBeyondIt) {
  add_node(1, {{"CPU", 2}});
  add_node(2, {{"CPU", 2}});
  JobId job = add_job();
  GroupId id = created_group(
      group_request(job, {{{"CPU", 2}}, {{"CPU", 2}}}, proto::GroupSpec::STRICT_SPREAD));
  report(1, {});
  report(2, {});
  for (int bundle : {1, 0}) {
    create(in_group(job, id, bundle, 2));
    auto order = take(sink.creates);
    EXPECT_EQ(order.request.bundle_index(), bundle);
    EXPECT_EQ(order.node.node, group(id).node_of(bundle));
    answer_create(order, created(10 + bundle));
    const NodeState& node = *core->view().cluster().find(order.node.node);
    EXPECT_TRUE(node.actors_hold.empty());
    EXPECT_TRUE(node.reserved.claims.empty());
    EXPECT_EQ(node.actors, 1);
  }
  drop_pushes();
}

TEST_F(GroupActorsTest, AnyBundleIsTheFirstWithRoom) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}, {{"CPU", 2}}}));
  std::vector<int> bundles;
  std::vector<ActorId> actors;
  for (int i = 0; i < 3; ++i) {
    actors.push_back(create(in_group(job, id, -1, 1)));
    auto order = take(sink.creates);
    bundles.push_back(order.request.bundle_index());
    answer_create(order, created(i + 1));
  }
  EXPECT_EQ(bundles, (std::vector{0, 1, 1}));
  ActorId waits = create(in_group(job, id, -1, 1));
  EXPECT_TRUE(sink.creates.empty());
  auto status = core->view().cluster_status(now);
  ASSERT_EQ(status.demands_size(), 1);
  EXPECT_EQ(status.demands(0).group_id(), id.binary());
  EXPECT_EQ(status.demands(0).bundle_index(), -1);
  EXPECT_FALSE(status.demands(0).infeasible());
  EXPECT_EQ(status.demands(0).waits_for(), "room in a bundle of placement group " + id.hex());
  EXPECT_TRUE(kill(actors[0], true));
  take(sink.kills);
  auto order = take(sink.creates);
  EXPECT_EQ(order.request.spec().actor_id(), waits.binary());
  EXPECT_EQ(order.request.bundle_index(), 0);
  drop_pushes();
}

TEST_F(GroupActorsTest, ADefaultActorNeedsItsCpuOnlyToBePlaced) {
  add_node(1, {{"CPU", 8}, {"memory", 8}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}}));
  for (int i = 0; i < 3; ++i) {
    create(in_group(job, id, 0, {{"CPU", 1}}, {}));
    ASSERT_EQ(sink.creates.size(), 1u);
    answer_create(take(sink.creates), created(i + 1));
  }
  GroupId gpus = created_group(group_request(job, {{{"memory", 1}}}));
  create(in_group(job, gpus, 0, {{"CPU", 1}}, {}));
  EXPECT_TRUE(sink.creates.empty());  // The actor does not fit.
  EXPECT_EQ(core->view().cluster_status(now).demands(0).waits_for(),
            "room in bundle 0 of placement group " + gpus.hex());
  drop_pushes();
}

TEST_F(GroupActorsTest, AnActorWaitsForItsGroup) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 2}}});
  // The actor's registration may come before that of the group, from another process.
  ActorId actor = create(in_group(job, id_of(request), 0, 1));
  // The text follows "waiting for".
  auto waits_for = [&] { return core->view().cluster_status(now).demands(0).waits_for(); };
  const std::string name = "placement group " + id_of(request).hex();
  EXPECT_EQ(waits_for(), name + ", which is not known yet");
  add_group(request);
  EXPECT_TRUE(sink.creates.empty());
  EXPECT_EQ(waits_for(), "a node for bundle 0 of " + name);
  add_node(2, {{"CPU", 2}});
  reserve_all();
  auto order = take(sink.creates);
  EXPECT_EQ(order.node.node, node_id(2));
  answer_create(order, created(1));
  EXPECT_EQ(state(actor), proto::ACTOR_ALIVE);
  drop_pushes();
}

TEST_F(GroupActorsTest, ANodeThatHasNoRoomInTheBundleIsAskedAgainLater) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}}));
  create(in_group(job, id, -1, 1));
  auto order = take(sink.creates);
  EXPECT_EQ(order.request.bundle_index(), 0);
  proto::CreateActorReply full;
  full.set_no_resources(true);
  answer_create(order, full);
  auto second = take(sink.creates);  // The other bundle is tried at once.
  EXPECT_EQ(second.request.bundle_index(), 1);
  answer_create(second, full);
  EXPECT_TRUE(sink.creates.empty());
  // Actors without group may still go to that node.
  create(actor_request(job, {{"CPU", 1}}, {{"CPU", 1}}));
  answer_create(take(sink.creates), created(3));
  advance(2 * options.settings.placement_settle_ms);
  EXPECT_EQ(take(sink.creates).request.bundle_index(), 0);
  drop_pushes();
}

TEST_F(GroupActorsTest, RemovalKillsActorsForGood) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}}));
  auto request = in_group(job, id, 0, 1);
  request.mutable_spec()->set_max_restarts(-1);
  ActorId alive = alive_actor(request, 1);
  ActorId waits = create(in_group(job, id, 0, 1));
  EXPECT_TRUE(remove_group(id).ok());
  EXPECT_EQ(state(alive), proto::ACTOR_DEAD);
  EXPECT_EQ(state(waits), proto::ACTOR_DEAD);
  for (const ActorId& actor : {alive, waits})
    EXPECT_EQ(info(actor).death().kind(), proto::ExitInfo::GROUP_REMOVED);
  EXPECT_EQ(take(sink.kills).request.why(), proto::ExitInfo::GROUP_REMOVED);
  take(sink.returns);
  // An actor that is created later, in a group that is removed, dies as well.
  ActorId late = create(in_group(job, id, 0, 1));
  EXPECT_EQ(info(late).death().kind(), proto::ExitInfo::GROUP_REMOVED);
  EXPECT_TRUE(sink.creates.empty());
  drop_pushes();
}

TEST_F(GroupActorsTest, ADeathThatItsNodeReportsForTheRemovalIsForGood) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}}));
  auto request = in_group(job, id, 0, 1);
  request.mutable_spec()->set_max_restarts(-1);
  ActorId actor = alive_actor(request, 1);
  EXPECT_TRUE(died(1, actor, info(actor).epoch(), proto::ExitInfo::GROUP_REMOVED));
  EXPECT_EQ(state(actor), proto::ACTOR_DEAD);
  drop_pushes();
}

TEST_F(GroupActorsTest, AnActorOfAnUnknownGroupDies) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  ActorId actor = create(in_group(job, make_group_id(job, rng), 0, 1));
  advance_alive(options.settings.node_timeout_ms - 500, {1});
  EXPECT_EQ(state(actor), proto::ACTOR_PENDING);
  advance_alive(1'000, {1});
  EXPECT_EQ(info(actor).death().kind(), proto::ExitInfo::GROUP_REMOVED);
  drop_pushes();
}

TEST_F(GroupActorsTest, AnActorRestartsIntoItsOwnBundle) {
  add_node(1, {{"CPU", 1}});
  add_node(2, {{"CPU", 4}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 2}}}));
  auto request = in_group(job, id, 0, 1);
  request.mutable_spec()->set_max_restarts(-1);
  ActorId actor = alive_actor(request, 1);
  // The actor's process ends: it starts again in the same bundle.
  EXPECT_TRUE(died(2, actor, info(actor).epoch(), proto::ExitInfo::SIGNALED));
  auto again = take(sink.creates);
  EXPECT_EQ(again.node.node, node_id(2));
  answer_create(again, created(2));
  // The actor's node is lost: it waits until the bundle has another one.
  lose_node(2);
  EXPECT_EQ(state(actor), proto::ACTOR_RESTARTING);
  EXPECT_TRUE(sink.creates.empty());
  drop_pushes();
  add_node(3, {{"CPU", 4}});
  reserve_all();
  auto third = take(sink.creates);
  EXPECT_EQ(third.node.node, node_id(3));
  EXPECT_EQ(third.request.bundle_index(), 0);
  answer_create(third, created(3));
  EXPECT_EQ(state(actor), proto::ACTOR_ALIVE);
  sink.closes.clear();
  drop_pushes();
}

TEST_F(GroupActorsTest, ActorsComeBackWithTheirNodeAfterARestart) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 2}}}));
  auto request = in_group(job, id, 0, 2);
  request.mutable_spec()->set_max_restarts(1);
  ActorId actor = alive_actor(request, 1);
  auto here = holding(1);
  here.add_live_jobs()->set_job_id(job.binary());
  auto without = here;
  *here.add_live_actors() = info(actor);
  restart();
  register_node(conn_of(1), here);
  EXPECT_EQ(state(actor), proto::ACTOR_ALIVE);
  EXPECT_TRUE(core->view().cluster().find(node_id(1))->actors_hold.empty());
  // The head knows the actor's seat, so that another actor waits.
  ActorId other = create(in_group(job, id, 0, 1));
  EXPECT_TRUE(sink.creates.empty());
  EXPECT_TRUE(kill(other, true));
  // The actor ends. Its next start gets a later epoch than all starts of earlier heads.
  EXPECT_TRUE(died(1, actor, 1, proto::ExitInfo::SIGNALED));
  auto again = take(sink.creates);
  EXPECT_EQ(again.request.epoch(), int64_t{2} << 32);
  sink.creates.clear();
  drop_pushes();
}

TEST_F(GroupActorsTest, ANodeTellsARestartedHeadInWhichBundleAnActorRuns) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}, {{"CPU", 2}}}));
  ActorId actor = alive_actor(in_group(job, id, -1, 2), 1);
  auto here = holding(1);
  here.add_live_jobs()->set_job_id(job.binary());
  *here.add_live_actors() = info(actor);
  here.mutable_live_actors(0)->set_bundle_index(1);
  restart();
  register_node(conn_of(1), here);
  EXPECT_EQ(state(actor), proto::ACTOR_ALIVE);
  create(in_group(job, id, -1, 1));
  EXPECT_EQ(take(sink.creates).request.bundle_index(), 0);
  create(in_group(job, id, -1, 1));
  EXPECT_TRUE(sink.creates.empty());
  drop_pushes();
}

TEST_F(GroupActorsTest, AnActorWhoseNodeHasLostTheBundleIsEnded) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 2}}}));
  auto request = in_group(job, id, -1, 1);
  request.mutable_spec()->set_max_restarts(-1);
  ActorId actor = alive_actor(request, 1);
  auto here = registration(1, {{"CPU", 4}});
  here.add_live_jobs()->set_job_id(job.binary());
  *here.add_live_actors() = info(actor);
  core->connection_closed(conn_of(1), now);
  commit();
  register_node(conn_of(1), here);
  EXPECT_EQ(take(sink.kills).request.actor_id(), actor.binary());
  EXPECT_EQ(state(actor), proto::ACTOR_RESTARTING);
  reserve_all();
  EXPECT_EQ(take(sink.creates).request.epoch(), 2);
  drop_pushes();
}

TEST_F(GroupActorsTest, AGroupOfADeadDetachedActorGoesWithTheActorsInIt) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  auto creator = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  creator.mutable_spec()->set_detached(true);
  ActorId root = alive_actor(creator, 1);
  auto request = group_request(job, {{{"CPU", 1}}});
  request.mutable_spec()->set_creator_actor_id(root.binary());
  GroupId id = created_group(request);
  auto member = in_group(job, id, 0, 1);
  member.mutable_spec()->set_detached(true);
  ActorId inside = alive_actor(member, 2);
  finish_job(job);
  EXPECT_EQ(state(inside), proto::ACTOR_ALIVE);
  EXPECT_TRUE(kill(root, true));
  EXPECT_EQ(group_state(id), proto::GROUP_REMOVED);
  EXPECT_EQ(info(inside).death().kind(), proto::ExitInfo::GROUP_REMOVED);
  EXPECT_EQ(sink.kills.size(), 2u);
  sink.kills.clear();
  sink.returns.clear();
  drop_pushes();
}

TEST_F(GroupActorsTest, ADetachedActorCreatesGroupsWhenItsJobIsForgotten) {
  options.settings.finished_jobs_kept = 0;
  restart();
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  auto creator = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  creator.mutable_spec()->set_detached(true);
  ActorId actor = alive_actor(creator, 1);
  finish_job(job);
  ASSERT_FALSE(core->view().jobs().find(job));
  auto request = group_request(job, {{{"CPU", 1}}});
  request.mutable_spec()->set_creator_actor_id(actor.binary());
  request.mutable_spec()->set_outlives_job(true);
  EXPECT_EQ(group_state(created_group(request)), proto::GROUP_CREATED);
  drop_pushes();
}

}  // namespace
}  // namespace rt::head
