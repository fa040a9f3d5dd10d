// Placement groups without failures: registration, names, placement, news, removal, ends of jobs.
#include "tests/unit/head/group_fixture.h"

namespace rt::head {
namespace {

using GroupsTest = GroupTest;

TEST_F(GroupsTest, NodesReserveThenTheRecordIsWrittenThenItIsCreated) {
  add_node(1, {{"CPU", 2}});
  add_node(2, {{"CPU", 2}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 2}}, {{"CPU", 2}}});
  const GroupId id = id_of(request);
  EXPECT_TRUE(add_group(request).ok());
  EXPECT_EQ(group_state(id), proto::GROUP_PENDING);
  EXPECT_FALSE(on_disk(id));
  auto first = take(sink.prepares), second = take(sink.prepares);
  EXPECT_EQ(first.request.job_id(), job.binary());
  EXPECT_EQ(first.request.epoch(), (int64_t{1} << 32) + 1);
  EXPECT_EQ(second.request.epoch(), first.request.epoch());
  ASSERT_EQ(first.request.bundles_size(), 1);
  EXPECT_NE(first.node.node, second.node.node);
  // The room is claimed already, for groups as for actors.
  EXPECT_TRUE(Cluster::free_now(*core->view().cluster().find(node_id(1))).empty());
  reserved(first);
  EXPECT_EQ(group_state(id), proto::GROUP_PENDING);
  proto::PrepareBundlesReply ok;
  ok.set_ok(true);
  answer_prepare(second, ok);
  EXPECT_EQ(group_state(id), proto::GROUP_PREPARED);
  EXPECT_EQ(node_of(id, 0), 0);  // Nothing is promised before the record is on disk.
  EXPECT_TRUE(news().empty());
  commit();
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_EQ(recorded(id).state(), proto::GROUP_CREATED);
  auto told = news();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].state(), proto::GROUP_CREATED);
  EXPECT_EQ(told[0].bundle_nodes(0), first.node.node.binary());
  EXPECT_EQ(told[0].bundle_epochs(1), first.request.epoch());
  EXPECT_GT(told[0].version(), int64_t{1} << 32);
  EXPECT_GT(told[0].placed_us(), 0);
  EXPECT_EQ(told[0].attempts(), 1);
}

TEST_F(GroupsTest, OneRecordIsWrittenAndErasedForAnUnnamedGroup) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}});
  Answer<proto::Empty> added;
  core->register_group(kOwner, request, now, added.reply());
  EXPECT_TRUE(added.ok());  // The answer does not wait for the disk.
  EXPECT_TRUE(sink.persists.empty());
  proto::PrepareBundlesReply ok;
  ok.set_ok(true);
  answer_prepare(take(sink.prepares), ok);
  ASSERT_EQ(sink.persists.size(), 1u);
  EXPECT_EQ(sink.persists[0].second.size(), 1u);
  commit();
  Answer<proto::Empty> removed;
  proto::GroupRequest removal;
  removal.set_group_id(request.spec().group_id());
  core->remove_group(kOwner, removal, now, removed.reply());
  EXPECT_FALSE(removed.answered());  // The answer to a removal does wait for the disk.
  ASSERT_EQ(sink.persists.size(), 1u);
  EXPECT_EQ(sink.persists[0].second.size(), 1u);
  EXPECT_FALSE(sink.persists[0].second[0].value);
  commit();
  EXPECT_TRUE(removed.ok());
  EXPECT_FALSE(on_disk(id_of(request)));
  auto back = take(sink.returns);
  EXPECT_EQ(back.request.group_id(), request.spec().group_id());
  EXPECT_GE(back.request.epoch(), (int64_t{1} << 32) + 1);
  EXPECT_EQ(back.request.why().kind(), proto::ExitInfo::GROUP_REMOVED);
  EXPECT_EQ(news_states(), (std::vector{proto::GROUP_CREATED, proto::GROUP_REMOVED}));
}

TEST_F(GroupsTest, ANamedGroupIsOnDiskBeforeTheAnswer) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  Answer<proto::Empty> answer, repeated;
  core->register_group(kOwner, request, now, answer.reply());
  core->register_group(kOwner, request, now, repeated.reply());
  EXPECT_FALSE(answer.answered());
  EXPECT_TRUE(sink.prepares.empty());
  proto::GetGroupRequest by_name;
  by_name.set_name("name");
  by_name.set_ray_namespace("ns");
  EXPECT_FALSE(core->view().get_group(by_name)->found());
  // The removal of a dead process's groups finds the group that is being stored.
  ASSERT_EQ(core->view().list_groups().groups_size(), 1);
  EXPECT_EQ(core->view().list_groups().groups(0).state(), proto::GROUP_PENDING);
  commit();
  EXPECT_TRUE(answer.ok() && repeated.ok());
  EXPECT_TRUE(on_disk(id_of(request)));
  EXPECT_EQ(core->view().get_group(by_name)->group().state(), proto::GROUP_PENDING);
  reserve_all();
  EXPECT_EQ(core->view().get_group(by_name)->group().state(), proto::GROUP_CREATED);
  by_name.set_ray_namespace("other");
  EXPECT_FALSE(core->view().get_group(by_name)->found());
  drop_pushes();
}

TEST_F(GroupsTest, ATakenNameIsRefusedAndItsSubscribersAreTold) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  created_group(group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name"));
  auto second = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  proto::SubscribeRequest subscribe;
  subscribe.add_group_ids(second.spec().group_id());
  ASSERT_TRUE(core->subscribe(60, subscribe, now));
  EXPECT_TRUE(sink.pushes.empty());
  auto answer = add_group(second);
  EXPECT_EQ(answer.error().code, Code::kAlreadyExists);
  for (ConnId conn : {kOwner, ConnId{60}}) {
    auto told = news(conn);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].state(), proto::GROUP_REMOVED);
    EXPECT_NE(told[0].why().find("'name' is taken"), std::string::npos);
  }
  // Later questions, and a repeated request, get the same answer.
  ASSERT_TRUE(core->subscribe(61, subscribe, now));
  EXPECT_EQ(news(61).at(0).state(), proto::GROUP_REMOVED);
  EXPECT_EQ(add_group(second).error().code, Code::kAlreadyExists);
  drop_pushes();
  auto elsewhere = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  elsewhere.mutable_spec()->set_ray_namespace("other");
  created_group(elsewhere);
}

TEST_F(GroupsTest, ANameIsFreeWhenItsGroupIsRemoved) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  GroupId first = created_group(group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name"));
  EXPECT_TRUE(remove_group(first).ok());
  take(sink.returns);
  drop_pushes();
  created_group(group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name"));
}

TEST_F(GroupsTest, ARegistrationThatIsRepeatedIsToldTheState) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}});
  GroupId id = created_group(request);
  EXPECT_TRUE(add_group(request, 77).ok());
  EXPECT_EQ(news_states(77), std::vector{proto::GROUP_CREATED});
  EXPECT_TRUE(remove_group(id).ok());
  take(sink.returns);
  EXPECT_EQ(news_states(77), std::vector{proto::GROUP_REMOVED});
  EXPECT_EQ(add_group(request, 78).error().code, Code::kNotFound);
  EXPECT_EQ(news_states(78), std::vector{proto::GROUP_REMOVED});
  drop_pushes();
}

TEST_F(GroupsTest, ARegistrationAfterItsRemovalIsRefused) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}});
  EXPECT_TRUE(remove_group(id_of(request)).ok());
  auto answer = add_group(request);
  EXPECT_EQ(answer.error().code, Code::kNotFound);
  EXPECT_NE(answer.error().message.find("was removed"), std::string::npos);
  EXPECT_EQ(news_states(), std::vector{proto::GROUP_REMOVED});
  proto::GroupRequest garbage;
  garbage.set_group_id("x");
  Answer<proto::Empty> refused;
  core->remove_group(kOwner, garbage, now, refused.reply());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
}

TEST_F(GroupsTest, BadRequestsAreRefusedWithOneSentence) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto refused = [&](const std::function<void(proto::GroupSpec&)>& spoil, const char* text,
                     Code code = Code::kInvalid) {
    auto request = group_request(job, {{{"CPU", 1}}});
    spoil(*request.mutable_spec());
    auto answer = add_group(request);
    EXPECT_EQ(answer.error().code, code) << text;
    EXPECT_NE(answer.error().message.find(text), std::string::npos) << answer.error().message;
  };
  refused([](auto& spec) { spec.set_group_id("short"); }, "its id has 5 bytes, not 18");
  refused([](auto& spec) { spec.set_job_id("no"); }, "the job id has 2 bytes");
  refused([](auto& spec) { spec.set_job_id(job_id_from_int(9).binary()); }, "another job's id");
  refused([](auto& spec) { spec.clear_bundles(); }, "it has no bundles");
  refused([](auto& spec) { spec.add_bundles(); }, "bundle 1 asks for no resource");
  refused(
      [](auto& spec) {
        (*spec.mutable_bundles(0)->mutable_resources()->mutable_units())["CPU"] = -1;
      },
      "out of range");
  refused([](auto& spec) { spec.set_strategy(static_cast<proto::GroupSpec::Strategy>(9)); },
          "strategy 9 is not known");
  refused([](auto& spec) { spec.set_soft_target_node_id(node_id(1).binary()); },
          "STRICT_PACK only");
  refused([](auto& spec) { (*spec.mutable_topology_strategy())["rack"] = "SPREAD"; },
          "topology strategy");
  refused([](auto& spec) { spec.mutable_owner()->set_worker_id("w"); }, "owner's worker id");
  refused([](auto& spec) { spec.set_creator_actor_id("a"); }, "actor that creates it");
  refused([](auto& spec) { spec.set_name(std::string(1'025, 'x')); },
          "its name has 1025 bytes, and 1024 are allowed");
  options.settings.placement_group_max_bundles = 2;
  restart();
  register_node(conn_of(1), registration(1, {{"CPU", 4}}));
  refused([](auto& spec) { spec.add_bundles(), spec.add_bundles(); },
          "it has 3 bundles, and 2 are allowed");
  drop_pushes();
  JobId stranger = job_id_from_int(9);
  EXPECT_NE(add_group(group_request(stranger, {{{"CPU", 1}}})).error().message.find("not known"),
            std::string::npos);
  EXPECT_EQ(core->view().groups().all().size(), 0u);
  drop_pushes();
}

TEST_F(GroupsTest, TheRefusalOfANodeGivesTheOthersBackAndIsTriedAgain) {
  add_node(1, {{"CPU", 1}});
  add_node(2, {{"CPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}}, proto::GroupSpec::STRICT_SPREAD);
  const GroupId id = id_of(request);
  add_group(request);
  auto first = take(sink.prepares), second = take(sink.prepares);
  reserved(first);
  refused(second, "a task is in the way");
  EXPECT_EQ(group_state(id), proto::GROUP_PENDING);
  auto back = take(sink.returns);
  EXPECT_EQ(back.node.node, first.node.node);
  EXPECT_EQ(back.request.epoch(), first.request.epoch());
  EXPECT_NE(why(id).find("a task is in the way"), std::string::npos);
  EXPECT_EQ(Cluster::free_now(*core->view().cluster().find(node_id(1))).get("CPU"), 1);
  advance(options.settings.placement_settle_ms);
  advance(options.settings.placement_settle_ms);
  auto again = take(sink.prepares);
  EXPECT_GT(again.request.epoch(), first.request.epoch());
  reserved(again);
  reserve_all();
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_EQ(news().at(0).attempts(), 2);
}

TEST_F(GroupsTest, AnswersOfEarlierAttemptsAreGivenBack) {
  add_node(1, {{"CPU", 1}});
  add_node(2, {{"CPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}}, proto::GroupSpec::STRICT_SPREAD);
  add_group(request);
  auto first = take(sink.prepares), late = take(sink.prepares);
  refused(first);
  EXPECT_EQ(take(sink.returns).node.node, late.node.node);
  reserved(late);
  auto back = take(sink.returns);
  EXPECT_EQ(back.node.node, late.node.node);
  EXPECT_EQ(back.request.epoch(), late.request.epoch());
  advance(500);
  reserve_all();
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
  drop_pushes();
  // An answer of the attempt that placed the group may come twice.
  RecordingSink::Prepare repeated = late;
  repeated.request.set_epoch(group(id_of(request)).info.bundle_epochs(0));
  reserved(repeated);
  EXPECT_TRUE(sink.returns.empty());
  EXPECT_TRUE(remove_group(id_of(request)).ok());
  sink.returns.clear();
  reserved(repeated);  // The node had the answer under way when the group was removed.
  EXPECT_EQ(take(sink.returns).request.group_id(), request.spec().group_id());
  drop_pushes();
}

TEST_F(GroupsTest, RemovalEndsEachPhase) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job();
  // The group is removed while its registration is being written.
  auto committing = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  Answer<proto::Empty> answer, removed;
  core->register_group(kOwner, committing, now, answer.reply());
  proto::GroupRequest removal;
  removal.set_group_id(committing.spec().group_id());
  core->remove_group(kOwner, removal, now, removed.reply());
  EXPECT_EQ(answer.error().code, Code::kNotFound);
  commit();
  EXPECT_TRUE(removed.ok());
  EXPECT_FALSE(on_disk(id_of(committing)));
  // The group is removed while it waits for nodes.
  auto queued = group_request(job, {{{"CPU", 2}}});
  add_group(queued);
  EXPECT_TRUE(remove_group(id_of(queued)).ok());
  // The group is removed while nodes are asked.
  auto preparing = group_request(job, {{{"CPU", 1}}});
  add_group(preparing);
  auto asked = take(sink.prepares);
  EXPECT_TRUE(remove_group(id_of(preparing)).ok());
  EXPECT_EQ(take(sink.returns).node.node, asked.node.node);
  EXPECT_EQ(Cluster::free_now(*core->view().cluster().find(node_id(1))).get("CPU"), 1);
  // The group is removed while its record is being written.
  auto recording = group_request(job, {{{"CPU", 1}}});
  add_group(recording);
  proto::PrepareBundlesReply ok;
  ok.set_ok(true);
  answer_prepare(take(sink.prepares), ok);
  EXPECT_EQ(group_state(id_of(recording)), proto::GROUP_PREPARED);
  EXPECT_TRUE(remove_group(id_of(recording)).ok());
  EXPECT_FALSE(on_disk(id_of(recording)));
  take(sink.returns);
  // The group is removed while it waits after a refusal.
  auto waiting = group_request(job, {{{"CPU", 1}}});
  add_group(waiting);
  refused(take(sink.prepares));
  EXPECT_TRUE(remove_group(id_of(waiting)).ok());
  advance(1000);
  EXPECT_TRUE(sink.prepares.empty());
  for (const auto& request : {committing, queued, preparing, recording, waiting})
    EXPECT_EQ(group_state(id_of(request)), proto::GROUP_REMOVED);
  EXPECT_EQ(core->view().groups().count(proto::GROUP_REMOVED), 5);
  EXPECT_EQ(core->view().groups().count(proto::GROUP_PENDING), 0);
  EXPECT_EQ(core->view().list_groups().groups_size(), 5);
  drop_pushes();
}

TEST_F(GroupsTest, TheLastRemovedGroupsAreKnown) {
  options.settings.removed_groups_kept = 2;
  restart();
  add_node(1, {{"CPU", 1}});
  JobId job = add_job();
  std::vector<GroupId> ids;
  for (int i = 0; i < 3; ++i) {
    auto request = group_request(job, {{{"CPU", 2}}});
    add_group(request);
    ids.push_back(id_of(request));
    remove_group(ids.back());
  }
  EXPECT_EQ(core->view().groups().find(ids[0]), nullptr);
  EXPECT_EQ(shown(ids[2]).state(), proto::GROUP_REMOVED);
  EXPECT_EQ(shown(ids[2]).why(), "it was removed");
  EXPECT_GT(shown(ids[2]).ended_ms(), 0);
  drop_pushes();
}

TEST_F(GroupsTest, TheEndOfAJobRemovesItsGroups) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  GroupId plain = created_group(group_request(job, {{{"CPU", 1}}}));
  auto request = group_request(job, {{{"CPU", 1}}});
  request.mutable_spec()->set_detached(true);
  GroupId detached = created_group(request);
  auto pending = group_request(job, {{{"CPU", 64}}});
  add_group(pending);
  finish_job(job);
  EXPECT_EQ(group_state(plain), proto::GROUP_REMOVED);
  EXPECT_EQ(group_state(id_of(pending)), proto::GROUP_REMOVED);
  EXPECT_NE(why(plain).find("has finished"), std::string::npos);
  EXPECT_EQ(group_state(detached), proto::GROUP_CREATED);
  EXPECT_EQ(take(sink.returns).request.group_id(), plain.binary());
  EXPECT_EQ(add_group(group_request(job, {{{"CPU", 1}}})).error().code, Code::kCancelled);
  EXPECT_TRUE(remove_group(detached).ok());
  take(sink.returns);
  drop_pushes();
}

TEST_F(GroupsTest, AGroupOfALivingActorOutlivesItsJob) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  auto creator = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  creator.mutable_spec()->set_detached(true);
  ActorId actor = alive_actor(creator, 1);
  auto request = group_request(job, {{{"CPU", 1}}});
  request.mutable_spec()->set_creator_actor_id(actor.binary());
  GroupId id = created_group(request);
  finish_job(job);
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  // The actor may create more groups.
  auto later = group_request(job, {{{"CPU", 1}}});
  later.mutable_spec()->set_creator_actor_id(actor.binary());
  GroupId late = created_group(later);
  EXPECT_TRUE(kill(actor, true));
  take(sink.kills);
  EXPECT_EQ(group_state(id), proto::GROUP_REMOVED);
  EXPECT_EQ(group_state(late), proto::GROUP_REMOVED);
  sink.returns.clear();
  drop_pushes();
}

TEST_F(GroupsTest, ADetachedActorTakesItsGroupsAlongWhileItsJobRuns) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  auto creator = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  creator.mutable_spec()->set_detached(true);
  ActorId actor = alive_actor(creator, 1);
  auto request = group_request(job, {{{"CPU", 1}}});
  request.mutable_spec()->set_creator_actor_id(actor.binary());
  request.mutable_spec()->set_outlives_job(true);
  GroupId id = created_group(request);
  EXPECT_TRUE(kill(actor, true));
  EXPECT_EQ(group_state(id), proto::GROUP_REMOVED);
  EXPECT_EQ(shown(id).bundle_nodes(0), node_id(1).binary());  // The bundle is where it was.
  EXPECT_EQ(node_of(id, 0), 0);
  take(sink.kills);
  take(sink.returns);
  drop_pushes();
}

TEST_F(GroupsTest, TheDeathOfItsCreatorDoesNotEndAGroupBeforeItsJob) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  ActorId actor = alive_actor(actor_request(job, {{"CPU", 1}}, {{"CPU", 1}}), 1);
  auto request = group_request(job, {{{"CPU", 1}}});
  request.mutable_spec()->set_creator_actor_id(actor.binary());
  GroupId id = created_group(request);
  EXPECT_TRUE(kill(actor, true));
  take(sink.kills);
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  finish_job(job);
  EXPECT_EQ(group_state(id), proto::GROUP_REMOVED);
  take(sink.returns);
  drop_pushes();
}

// The request of a process that was killed may be read after its death, and after the head has
// looked for everything that the process left.
TEST_F(GroupsTest, ADeadCreatorGetsNoGroupThatNobodyKnows) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  ActorId actor = alive_actor(actor_request(job, {{"CPU", 1}}, {{"CPU", 1}}), 1);
  auto kept = group_request(job, {{{"CPU", 1}}});
  auto named = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  auto bound = group_request(job, {{{"CPU", 1}}});
  for (auto* request : {&kept, &named, &bound})
    request->mutable_spec()->set_creator_actor_id(actor.binary());
  bound.mutable_spec()->set_outlives_job(true);
  EXPECT_TRUE(kill(actor, true));
  take(sink.kills);
  EXPECT_EQ(add_group(named).error().code, Code::kCancelled);
  EXPECT_EQ(add_group(bound).error().code, Code::kCancelled);
  // The process may have handed out the group's handle before it died.
  EXPECT_EQ(group_state(created_group(kept)), proto::GROUP_CREATED);
  finish_job(job);
  take(sink.returns);
  drop_pushes();
}

TEST_F(GroupsTest, AnEarlierLifeOfAnActorTakesNoName) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  auto creator = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  creator.mutable_spec()->set_max_restarts(-1);
  ActorId actor = alive_actor(creator, 1);
  auto late = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  late.mutable_spec()->set_creator_actor_id(actor.binary());
  *late.mutable_spec()->mutable_owner() = info(actor).address();
  EXPECT_TRUE(died(1, actor, 1, proto::ExitInfo::SIGNALED));
  answer_create(take(sink.creates), created(2));
  EXPECT_EQ(add_group(late).error().code, Code::kCancelled);
  drop_pushes();
}

TEST_F(GroupsTest, AGroupOfATaskThatOutlivesItsJobEndsWithItsOwner) {
  add_node(1, {{"CPU", 8}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}});
  request.mutable_spec()->set_outlives_job(true);
  request.mutable_spec()->mutable_owner()->set_worker_id(worker_id(5).binary());
  GroupId id = created_group(request);
  finish_job(job);
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  proto::DeadWorkers dead;
  dead.add_worker_ids(worker_id(5).binary());
  ASSERT_TRUE(core->dead_workers(conn_of(1), dead, now));
  commit();
  EXPECT_EQ(group_state(id), proto::GROUP_REMOVED);
  take(sink.returns);
  // The news of the end may come before the registration.
  auto late = group_request(job, {{{"CPU", 1}}});
  late.mutable_spec()->set_outlives_job(true);
  late.mutable_spec()->mutable_owner()->set_worker_id(worker_id(5).binary());
  EXPECT_EQ(add_group(late).error().code, Code::kCancelled);
  drop_pushes();
}

TEST_F(GroupsTest, StatusSaysWhatWaitsAndWhy) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  proto::SubscribeRequest subscribe;
  subscribe.set_logs_of_job(job.binary());
  ASSERT_TRUE(core->subscribe(kOwner, subscribe, now));
  auto request = group_request(job, {{{"CPU", 64}}}, proto::GroupSpec::PACK, "big");
  add_group(request);
  drop_pushes();
  auto status = core->view().cluster_status(now);
  ASSERT_EQ(status.pending_groups_size(), 1);
  EXPECT_EQ(status.pending_groups(0).why(),
            "bundle 0 {'CPU': 64.0} fits on no node: the nearest, 10.0.0.1, lacks 60 CPU");
  EXPECT_TRUE(status.pending_groups(0).infeasible());
  EXPECT_EQ(status.pending_groups(0).attempts(), 1);
  EXPECT_FALSE(status.pending_groups(0).spec().has_owner());
  advance_alive(options.settings.infeasible_warning_after_ms + 600, {1});
  ASSERT_EQ(notices().size(), 1u);
  EXPECT_NE(notices()[0].find("The placement group 'big' cannot be placed"), std::string::npos);
  drop_pushes();
  add_node(2, {{"CPU", 64}});
  reserve_all();
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
  EXPECT_EQ(core->view().cluster_status(now).pending_groups_size(), 0);
  drop_pushes();
}

TEST_F(GroupsTest, ABusyClusterIsNotInfeasibleAndTasksAreMadeToLeave) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  report(1, {{"CPU", 1}});  // Tasks run there.
  auto request = group_request(job, {{{"CPU", 4}}});
  add_group(request);
  EXPECT_TRUE(sink.prepares.empty());
  EXPECT_EQ(why(id_of(request)),
            "bundle 0 {'CPU': 4.0} finds no room now: the nearest, 10.0.0.1, lacks 3 CPU");
  EXPECT_FALSE(shown(id_of(request)).infeasible());
  advance(options.settings.lease_revoke_after_ms + options.settings.placement_settle_ms);
  reserve_all();  // The node took leases back.
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
  // The room of an actor or of another bundle is not taken back.
  auto second = group_request(job, {{{"CPU", 4}}});
  add_group(second);
  advance(1000);
  EXPECT_TRUE(sink.prepares.empty());
  EXPECT_TRUE(remove_group(id_of(request)).ok());
  take(sink.returns);
  advance(200);
  EXPECT_EQ(take(sink.prepares).request.group_id(), second.spec().group_id());
  drop_pushes();
}

TEST_F(GroupsTest, EqualGroupsArePlacedOldestFirst) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  std::vector<GroupId> ids;
  for (int i = 0; i < 4; ++i) {
    auto request = group_request(job, {{{"CPU", 2}}});
    add_group(request);
    ids.push_back(id_of(request));
  }
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(sink.prepares.size(), 1u);
    EXPECT_EQ(sink.prepares[0].request.group_id(), ids[static_cast<size_t>(i)].binary());
    reserve_all();
    remove_group(ids[static_cast<size_t>(i)]);
    take(sink.returns);
  }
  drop_pushes();
}

TEST_F(GroupsTest, TenThousandPendingGroupsAreSearchedForOnce) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  for (int i = 0; i < 10'000; ++i) {
    Answer<proto::Empty> answer;
    core->register_group(kOwner, group_request(job, {{{"CPU", 2}}}), now, answer.reply());
  }
  EXPECT_EQ(core->view().groups().queues().size(), 1u);
  reserve_all();
  EXPECT_EQ(core->view().groups().count(proto::GROUP_CREATED), 1);
  EXPECT_EQ(core->view().cluster_status(now).pending_groups_size(), 9'999);
  add_node(2, {{"CPU", 20}});
  reserve_all();
  EXPECT_EQ(core->view().groups().count(proto::GROUP_CREATED), 11);
  finish_job(job);
  EXPECT_EQ(core->view().groups().count(proto::GROUP_REMOVED), 10'000);
  sink.returns.clear();
  drop_pushes();
}

TEST_F(GroupsTest, ManyShapesAreLookedAtInTurns) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job();
  for (int i = 2; i < 700; ++i) add_group(group_request(job, {{{"CPU", static_cast<double>(i)}}}));
  drop_pushes();
  add_node(2, {{"CPU", 300'000}});
  std::set<std::string> asked;
  for (int i = 0; i < 20; ++i) {
    advance(options.settings.placement_settle_ms);
    while (!sink.prepares.empty()) {
      auto prepare = take(sink.prepares);
      asked.insert(prepare.request.group_id());
      reserved(prepare);
      remove_group(GroupId::from_binary(prepare.request.group_id()));
    }
    report(1, {{"CPU", 1}});
    report(2, {{"CPU", 300'000}});
  }
  EXPECT_EQ(asked.size(), 698u);
  sink.returns.clear();
  drop_pushes();
}

}  // namespace
}  // namespace rt::head
