// Actors in the head's core: registration, placement, names, and the events that followers
// receive.
#include "tests/unit/head/core_fixture.h"

namespace rt::head {
namespace {

class ActorsTest : public HeadTest {
 protected:
  void follow(const ActorId& id, ConnId conn = 7) {
    proto::SubscribeRequest request;
    request.add_actor_ids(id.binary());
    ASSERT_TRUE(core->subscribe(conn, request, now));
  }
  proto::ActorInfo next_news() {
    auto push = take(sink.pushes);
    EXPECT_EQ(push.event.actors_size(), 1);
    return push.event.actors_size() ? push.event.actors(0) : proto::ActorInfo();
  }
};

TEST_F(ActorsTest, RegistrationIsDurableBeforeItIsAnsweredOrPlaced) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = actor_request(job, {{"CPU", 1}}, {});
  Answer<proto::RegisterActorReply> answer;
  core->register_actor(request, now, answer.reply());
  EXPECT_FALSE(answer.answered());
  EXPECT_TRUE(sink.creates.empty());
  proto::GetActorRequest get;
  get.set_actor_id(request.spec().actor_id());
  EXPECT_FALSE(core->view().get_actor(get)->found());
  commit();
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(disk.tables["actors"].contains(request.spec().actor_id()));
  auto create = take(sink.creates);
  EXPECT_EQ(create.request.epoch(), 1);
  EXPECT_EQ(create.node.node, node_id(1));
  answer_create(create, created(1));
  EXPECT_TRUE(core->view().get_actor(get)->found());
}

TEST_F(ActorsTest, AWarningAboutAnActorIsSafeForTheTerminalsOfDrivers) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  proto::SubscribeRequest subscribe;
  subscribe.set_logs_of_job(job.binary());
  ASSERT_TRUE(core->subscribe(7, subscribe, now));
  register_actor(actor_request(job, {{"red\x1b[31m\nline", 1}}, {}));
  sink.pushes.clear();
  advance_alive(options.settings.infeasible_warning_after_ms + 600, {1});
  ASSERT_EQ(sink.pushes.size(), 1u);
  const proto::HeadEvent event = take(sink.pushes).event;
  ASSERT_EQ(event.notices_size(), 1);
  const std::string& text = event.notices(0).text();
  EXPECT_NE(text.find("which no node of the cluster has"), std::string::npos) << text;
  EXPECT_NE(text.find("red\\x1b[31m line"), std::string::npos) << text;
}

TEST_F(ActorsTest, AFullDiskRefusesTheActorAndLeavesNoTrace) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = actor_request(job, {{"CPU", 1}}, {});
  request.mutable_spec()->set_name("a");
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  auto answer = register_actor(request);
  EXPECT_EQ(answer.error().code, Code::kOutOfDisk);
  EXPECT_FALSE(find_named("a").found());
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_TRUE(register_actor(request).ok());  // With space again, the same id and name are free.
  answer_create(take(sink.creates), created(1));
}

TEST_F(ActorsTest, FollowersSeeEveryStepWithItsEpoch) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = actor_request(job, {{"CPU", 1}}, {});
  request.mutable_spec()->set_max_restarts(1);
  request.mutable_spec()->add_args()->set_inlined("big");
  ActorId id = ActorId::from_binary(request.spec().actor_id());
  follow(id);  // An actor can be followed before it exists.
  create(request);
  answer_create(take(sink.creates), created(1));
  auto alive = next_news();
  EXPECT_EQ(alive.state(), proto::ACTOR_ALIVE);
  EXPECT_EQ(alive.epoch(), 1);
  EXPECT_EQ(alive.address().worker_id(), worker_id(1).binary());
  EXPECT_EQ(alive.address().node_id(), node_id(1).binary());
  EXPECT_EQ(alive.spec().args_size(), 0);
  EXPECT_TRUE(died(1, id, 1, proto::ExitInfo::SIGNALED));
  auto restarting = next_news();
  EXPECT_EQ(restarting.state(), proto::ACTOR_RESTARTING);
  auto create_again = take(sink.creates);
  EXPECT_EQ(create_again.request.epoch(), 2);
  EXPECT_EQ(create_again.request.num_restarts(), 1);
  EXPECT_EQ(create_again.request.spec().args_size(), 1);
  answer_create(create_again, created(2));
  EXPECT_EQ(next_news().epoch(), 2);
  EXPECT_TRUE(died(1, id, 2, proto::ExitInfo::EXITED));
  auto dead = next_news();
  EXPECT_EQ(dead.state(), proto::ACTOR_DEAD);
  EXPECT_EQ(dead.death().kind(), proto::ExitInfo::EXITED);
  EXPECT_NE(dead.death().message().find("max_restarts=1"), std::string::npos);
  proto::ActorInfo record;
  ASSERT_TRUE(record.ParseFromString(disk.tables["actors"][id.binary()]));
  EXPECT_EQ(record.state(), proto::ACTOR_DEAD);
  EXPECT_EQ(record.spec().args_size(), 0);
  follow(id, 8);  // A late follower receives the current state.
  EXPECT_EQ(next_news().state(), proto::ACTOR_DEAD);
}

TEST_F(ActorsTest, AStartedActorMakesRoomForTheNextAtOnce) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  std::vector<ActorId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(create(actor_request(job, {{"CPU", 1}}, {})));
  auto first = take(sink.creates), second = take(sink.creates);
  EXPECT_TRUE(sink.creates.empty());
  // Reports of a node do not subtract the resources of starting actors: only the head counts
  // those, however long a constructor takes.
  advance(3 * options.settings.placement_settle_ms);
  EXPECT_TRUE(report(1, {{"CPU", 2}}));
  EXPECT_TRUE(sink.creates.empty());
  // Clients do not see the reserved resources as available either.
  EXPECT_TRUE(core->view().get_nodes({}, now).nodes(0).available().units().empty());
  answer_create(first, created(1));
  auto third = take(sink.creates);  // Needs no report of the node.
  EXPECT_TRUE(sink.creates.empty());
  answer_create(second, created(2));
  answer_create(take(sink.creates), created(4));
  answer_create(third, created(3));
  EXPECT_EQ(
      ResourceSet::from_proto(core->view().get_nodes({}, now).nodes(0).available()).get("CPU"), 2);
  drop_node_pushes();
}

TEST_F(ActorsTest, NamesAreUniquePerNamespace) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto first = actor_request(job, {}, {});
  first.mutable_spec()->set_name("a");
  ActorId id = alive_actor(first, 1);
  auto second = actor_request(job, {}, {});
  second.mutable_spec()->set_name("a");
  auto taken = register_actor(second);
  EXPECT_EQ(taken.error().code, Code::kAlreadyExists);
  EXPECT_NE(taken.error().message.find("already taken"), std::string::npos);
  second.set_get_if_exists(true);
  auto existing = register_actor(second);
  ASSERT_TRUE(existing.ok());
  EXPECT_TRUE(existing->existed());
  EXPECT_EQ(existing->actor_id(), id.binary());
  second.set_get_if_exists(false);
  second.mutable_spec()->set_ray_namespace("other");
  alive_actor(second, 2);
  EXPECT_TRUE(kill(id, true));
  EXPECT_EQ(take(sink.kills).request.worker_id(), worker_id(1).binary());
  EXPECT_FALSE(find_named("a").found());
  auto third = actor_request(job, {}, {});
  third.mutable_spec()->set_name("a");
  alive_actor(third, 3);  // The name of a dead actor is free.
}

TEST_F(ActorsTest, GetIfExistsWaitsForTheCommitOfTheFirst) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto first = actor_request(job, {}, {}), second = actor_request(job, {}, {});
  first.mutable_spec()->set_name("a");
  second.mutable_spec()->set_name("a");
  second.set_get_if_exists(true);
  Answer<proto::RegisterActorReply> one, two, again;
  core->register_actor(first, now, one.reply());
  core->register_actor(second, now, two.reply());
  core->register_actor(first, now, again.reply());  // A repeated request waits for the same commit.
  EXPECT_FALSE(two.answered());
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  commit();
  EXPECT_EQ(one.error().code, Code::kOutOfDisk);
  EXPECT_EQ(two.error().code, Code::kOutOfDisk);
  EXPECT_EQ(again.error().code, Code::kOutOfDisk);
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
}

TEST_F(ActorsTest, AskingAgainAfterALostAnswerIsHarmless) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->set_name("a");
  alive_actor(request, 1);
  auto again = register_actor(request);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->existed());
}

TEST_F(ActorsTest, AnActorThatWaitsForItsArgumentsHasItsNameAndNoPlace) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = actor_request(job, {{"CPU", 1}}, {});
  request.mutable_spec()->set_name("a");
  request.set_arguments(proto::RegisterActorRequest::FOLLOW);
  ActorId id = create(request);
  EXPECT_EQ(state(id), proto::ACTOR_DEPENDENCIES_UNREADY);
  EXPECT_TRUE(register_actor(request).ok());  // A repeated request changes nothing.
  EXPECT_EQ(ActorId::from_binary(find_named("a").actor().spec().actor_id()), id);
  auto same_name = actor_request(job, {}, {});
  same_name.mutable_spec()->set_name("a");
  EXPECT_EQ(register_actor(same_name).error().code, Code::kAlreadyExists);
  EXPECT_TRUE(sink.creates.empty());
  EXPECT_EQ(core->view().cluster_status(now).demands_size(), 0);
  EXPECT_EQ(register_actor(arguments_of(same_name)).error().code, Code::kNotFound);

  Answer<proto::RegisterActorReply> first, repeated;
  core->register_actor(arguments_of(request), now, first.reply());
  core->register_actor(arguments_of(request), now, repeated.reply());
  EXPECT_FALSE(first.answered() || repeated.answered()) << "not on disk yet";
  EXPECT_TRUE(sink.creates.empty());
  commit();
  EXPECT_TRUE(first.ok() && repeated.ok());
  auto create = take(sink.creates);
  ASSERT_EQ(create.request.spec().args_size(), 1);
  EXPECT_EQ(create.request.spec().args(0).inlined(), "argument");
  EXPECT_EQ(create.request.spec().name(), "a");
  answer_create(create, created(1));
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_TRUE(register_actor(arguments_of(request)).ok());
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
}

TEST_F(ActorsTest, AnActorCanBeKilledWhileItWaitsForItsArguments) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->set_name("a");
  request.set_arguments(proto::RegisterActorRequest::FOLLOW);
  ActorId id = create(request);
  EXPECT_TRUE(kill(id, true, proto::ExitInfo::OUT_OF_SCOPE, true));
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
  EXPECT_FALSE(find_named("a").found());
  EXPECT_TRUE(register_actor(arguments_of(request)).ok());
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
}

TEST_F(ActorsTest, AnActorWhoseArgumentsCannotBeStoredIsDead) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = actor_request(job, {}, {});
  request.set_arguments(proto::RegisterActorRequest::FOLLOW);
  ActorId id = create(request);
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  EXPECT_EQ(register_actor(arguments_of(request)).error().code, Code::kOutOfDisk);
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
  EXPECT_NE(info(id).death().message().find("no space left"), std::string::npos);
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
}

TEST_F(ActorsTest, NoNodeGetsMoreThanItHas) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  for (int i = 0; i < 5; ++i) create(actor_request(job, {{"CPU", 1}}, {{"CPU", 1}}));
  ASSERT_EQ(sink.creates.size(), 2u);    // The node's report still says that 2 CPUs are free.
  EXPECT_TRUE(report(1, {{"CPU", 2}}));  // Sent before the node received the orders.
  ASSERT_EQ(sink.creates.size(), 2u);
  answer_create(take(sink.creates), created(1));
  EXPECT_TRUE(report(1, {}));
  answer_create(take(sink.creates), created(2));
  EXPECT_TRUE(sink.creates.empty());
  auto status = core->view().cluster_status(now);
  ASSERT_EQ(status.demands_size(), 1);
  EXPECT_EQ(status.demands(0).count(), 3);
  EXPECT_FALSE(status.demands(0).infeasible());
  // A wrong or outdated report does no harm, because the head knows which resources actors hold.
  advance_alive(1000, {1});
  EXPECT_TRUE(report(1, {{"CPU", 2}}));
  EXPECT_TRUE(sink.creates.empty());
  add_node(2, {{"CPU", 2}});
  ASSERT_EQ(sink.creates.size(), 2u);
  for (int i = 3; i <= 4; ++i) answer_create(take(sink.creates), created(i));
}

TEST_F(ActorsTest, ActorsThatHoldNothingFreeTheirPlaceWithTheAnswer) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  for (int i = 0; i < 6; ++i) create(actor_request(job, {{"CPU", 1}}, {}));
  for (int i = 0; i < 6; ++i) {
    EXPECT_LE(sink.creates.size(), 2u);
    answer_create(take(sink.creates), created(i + 1));  // No report comes in between.
  }
}

TEST_F(ActorsTest, ARefusalSendsTheActorElsewhere) {
  add_node(1, {{"CPU", 2}});
  add_node(2, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = create(actor_request(job, {{"CPU", 1}}, {{"CPU", 1}}));
  auto first = take(sink.creates);
  EXPECT_EQ(first.node.node, node_id(1));  // The owner's node comes first.
  proto::CreateActorReply full;
  full.set_no_resources(true);
  answer_create(first, full);
  auto second = take(sink.creates);
  EXPECT_EQ(second.node.node, node_id(2));
  EXPECT_EQ(second.request.epoch(), 1);  // The first node had started nothing.
  answer_create(second, created(1));
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_EQ(info(id).num_restarts(), 0);
  drop_node_pushes();
}

TEST_F(ActorsTest, AffinityAndLabelsChooseTheNode) {
  add_node(1, {{"CPU", 4}});
  auto request = registration(2, {{"CPU", 4}});
  (*request.mutable_node()->mutable_labels())["zone"] = "b";
  ASSERT_TRUE(register_node(conn_of(2), request).ok());
  drop_node_pushes();
  JobId job = add_job();
  auto labelled = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  auto* rule = labelled.mutable_spec()
                   ->mutable_creation()
                   ->mutable_constraint()
                   ->mutable_hard()
                   ->add_rules();
  rule->set_key("zone");
  rule->add_values("b");
  create(labelled);
  auto sent = take(sink.creates);
  EXPECT_EQ(sent.node.node, node_id(2));
  answer_create(sent, created(1));
  auto affine = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  affine.mutable_spec()->mutable_creation()->mutable_constraint()->set_node_id(node_id(2).binary());
  create(affine);
  sent = take(sink.creates);
  EXPECT_EQ(sent.node.node, node_id(2));
  answer_create(sent, created(2));
  // No node has this id: hard affinity fails the actor, soft affinity is ignored.
  auto gone = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  gone.mutable_spec()->mutable_creation()->mutable_constraint()->set_node_id(node_id(9).binary());
  ActorId id = create(gone);
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
  EXPECT_EQ(info(id).death().kind(), proto::ExitInfo::UNSCHEDULABLE);
  auto soft = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  *soft.mutable_spec()->mutable_creation()->mutable_constraint() =
      gone.spec().creation().constraint();
  soft.mutable_spec()->mutable_creation()->mutable_constraint()->set_soft(true);
  create(soft);
  answer_create(take(sink.creates), created(3));
  drop_node_pushes();
}

TEST_F(ActorsTest, TasksInTheWayAreAskedToYieldAfterAWhile) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  EXPECT_TRUE(report(1, {}));  // All CPUs are leased to tasks.
  create(actor_request(job, {{"CPU", 1}}, {{"CPU", 1}}));
  EXPECT_TRUE(sink.creates.empty());
  advance(250);
  // The order goes to the node all the same: its node-manager revokes leases to make room.
  answer_create(take(sink.creates), created(1));
}

TEST_F(ActorsTest, PackingThenSpreading) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  JobId job = add_job();
  std::vector<int> counts(3);
  for (int i = 0; i < 6; ++i) {
    create(actor_request(job, {{"CPU", 1}}, {{"CPU", 1}}));
    auto create = take(sink.creates);
    ++counts[create.node.node == node_id(1) ? 1 : 2];
    if (i == 1) {
      EXPECT_EQ(counts[1], 2);  // This is half of the first node.
    }
    if (i == 3) {
      EXPECT_EQ(counts[2], 2);
    }
    answer_create(create, created(i + 1));
  }
  EXPECT_EQ(counts[1], 3);
  EXPECT_EQ(counts[2], 3);
  drop_node_pushes();
}

TEST_F(ActorsTest, SpreadUsesAllNodes) {
  for (int n : {1, 2, 3}) add_node(n, {{"CPU", 8}});
  JobId job = add_job();
  std::set<NodeId> used;
  for (int i = 0; i < 3; ++i) {
    auto request = actor_request(job, {{"CPU", 1}}, {});
    request.mutable_spec()->mutable_creation()->set_strategy(proto::SPREAD);
    create(request);
    auto create = take(sink.creates);
    used.insert(create.node.node);
    answer_create(create, created(i + 1));
  }
  EXPECT_EQ(used.size(), 3u);
  drop_node_pushes();
}

TEST_F(ActorsTest, InfeasibleActorsWaitAndTheirDriverIsTold) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  proto::SubscribeRequest follow;
  follow.set_logs_of_job(job.binary());
  ASSERT_TRUE(core->subscribe(7, follow, now));
  for (int i = 0; i < 3; ++i) create(actor_request(job, {{"GPU", 1}}, {{"GPU", 1}}));
  auto status = core->view().cluster_status(now);
  ASSERT_EQ(status.demands_size(), 1);
  EXPECT_TRUE(status.demands(0).infeasible());
  EXPECT_EQ(status.demands(0).count(), 3);
  EXPECT_TRUE(sink.pushes.empty());
  advance_alive(3000, {1});
  auto push = take(sink.pushes);  // There is one notice for all actors that need the same.
  EXPECT_EQ(push.conn, 7u);
  ASSERT_EQ(push.event.notices_size(), 1);
  EXPECT_NE(push.event.notices(0).text().find("'GPU': 1.0"), std::string::npos);
  add_node(2, {{"GPU", 4}});
  ASSERT_EQ(sink.creates.size(), 3u);
  for (int i = 1; i <= 3; ++i) answer_create(take(sink.creates), created(i));
}

TEST_F(ActorsTest, AClientMayFollowAnyNumberOfActorsOneAfterTheOther) {
  options.settings.subscriptions_per_connection = 2;
  restart();
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  for (int i = 0; i < 10; ++i) {
    auto request = actor_request(job, {}, {});
    ActorId id = ActorId::from_binary(request.spec().actor_id());
    create(request);
    answer_create(take(sink.creates), created(1));
    follow(id);
    EXPECT_EQ(next_news().state(), proto::ACTOR_ALIVE);
    ASSERT_TRUE(kill(id, true));
    while (!sink.pushes.empty()) take(sink.pushes);
    sink.kills.clear();
    follow(id, 8);  // The follower of a dead actor gets one event and uses up no subscription.
    EXPECT_EQ(next_news().state(), proto::ACTOR_DEAD);
  }
}

TEST_F(ActorsTest, NodesAreToldWhatActorsHoldOnTheOthers) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto held = [&] {
    return ResourceSet::from_proto(core->view().get_nodes({}, now).nodes(0).held()).get("CPU");
  };
  ActorId id = alive_actor(actor_request(job, {{"CPU", 2}}, {{"CPU", 1}}), 1);
  EXPECT_EQ(held(), 1);
  core->connection_closed(conn_of(1), now);
  auto back = registration(1, {{"CPU", 4}});
  *back.add_live_actors() = info(id);
  back.add_live_jobs()->set_job_id(job.binary());
  ASSERT_TRUE(register_node(301, back).ok());
  EXPECT_EQ(held(), 1);
  EXPECT_TRUE(kill(id, true));
  sink.kills.clear();
  EXPECT_EQ(held(), 0);
  drop_node_pushes();
}

TEST_F(ActorsTest, MalformedRegistrationsAreRefused) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  auto refuse = [&](auto change, Code code) {
    auto request = actor_request(job, {}, {});
    change(*request.mutable_spec());
    EXPECT_EQ(register_actor(request).error().code, code);
  };
  refuse([](proto::ActorSpec& s) { s.set_actor_id("x"); }, Code::kInvalid);
  refuse([](proto::ActorSpec& s) { s.set_job_id("x"); }, Code::kInvalid);
  refuse([](proto::ActorSpec& s) { s.set_job_id(job_id_from_int(9).binary()); }, Code::kInvalid);
  refuse([](proto::ActorSpec& s) { s.mutable_owner()->set_worker_id("x"); }, Code::kInvalid);
  refuse([](proto::ActorSpec& s) { s.set_max_restarts(-2); }, Code::kInvalid);
  refuse([](proto::ActorSpec& s) { (*s.mutable_placement()->mutable_units())["CPU"] = -5; },
         Code::kInvalid);
  refuse(
      [](proto::ActorSpec& s) {
        s.mutable_creation()->set_strategy(static_cast<proto::SchedulingStrategy>(99));
      },
      Code::kUnsupported);
  auto unknown = actor_request(job_id_from_int(9), {}, {});
  EXPECT_EQ(register_actor(unknown).error().code, Code::kNotFound);
  finish_job(job);
  take(sink.pushes);  // This push has the event with finished_jobs.
  EXPECT_EQ(register_actor(actor_request(job, {}, {})).error().code, Code::kCancelled);
}

TEST_F(ActorsTest, ListsAndLookups) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  auto named = actor_request(job, {}, {});
  named.mutable_spec()->set_name("a");
  named.mutable_spec()->set_handle_blob("methods");
  named.mutable_spec()->mutable_creation()->mutable_function()->set_blob("code");
  alive_actor(named, 1);
  ActorId plain = alive_actor(actor_request(job, {}, {}), 2);
  EXPECT_TRUE(kill(plain, true));
  take(sink.kills);
  auto count = [&](auto set) {
    proto::ListActorsRequest request;
    set(request);
    return core->view().list_actors(request)->actors_size();
  };
  EXPECT_EQ(count([](auto& r) { r.set_all_namespaces(true); }), 2);
  EXPECT_EQ(count([](auto& r) { r.set_alive_only(true); }), 1);
  EXPECT_EQ(count([](auto& r) {
              r.set_named_only(true);
              r.set_ray_namespace("ns");
            }),
            1);
  EXPECT_EQ(count([](auto& r) { r.set_ray_namespace("other"); }), 0);
  EXPECT_EQ(find_named("a").actor().spec().handle_blob(), "methods");
  EXPECT_FALSE(find_named("b").found());
  EXPECT_EQ(core->view().get_actor(proto::GetActorRequest()).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace rt::head
