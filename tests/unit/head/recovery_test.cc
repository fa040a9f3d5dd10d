// A head that was killed and starts again on the same disk: the nodes come back with their actors
// and jobs, or stay away.
#include "tests/unit/head/core_fixture.h"

namespace rt::head {
namespace {

class RecoveryTest : public HeadTest {
 protected:
  proto::RegisterNodeRequest back(int n, std::initializer_list<ActorId> actors,
                                  std::initializer_list<JobId> jobs) {
    auto request = registration(n, reported[n]);
    for (const ActorId& id : actors) *request.add_live_actors() = remembered.at(id);
    for (const JobId& job : jobs) request.add_live_jobs()->set_job_id(job.binary());
    return request;
  }
  void remember(const ActorId& id) { remembered[id] = info(id); }
  std::map<ActorId, proto::ActorInfo> remembered;
};

TEST_F(RecoveryTest, EverythingLivesOnWhenNodesComeBack) {
  std::string cluster = core->view().cluster_id();
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  JobId job = add_job(1);
  auto request = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  request.mutable_spec()->set_name("a");
  ActorId id = alive_actor(request, 1);
  remember(id);
  restart();
  EXPECT_EQ(core->view().cluster_id(), cluster);
  EXPECT_EQ(core->view().incarnation(), 2);
  EXPECT_EQ(core->view().get_nodes({}, now).nodes_size(), 2);
  EXPECT_EQ(find_named("a").actor().address().worker_id(), worker_id(1).binary());
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  auto answer = register_node(201, back(1, {id}, {job}));
  EXPECT_EQ(answer->head_incarnation(), 2);
  register_node(202, back(2, {}, {}));
  advance(options.settings.node_timeout_ms - 1);
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_EQ(info(id).epoch(), 1);
  EXPECT_FALSE(core->view().get_jobs().jobs(0).finished());
  EXPECT_EQ(core->view().cluster().find(node_id(1))->actors_hold.get("CPU"), 1);
  drop_node_pushes();
  incarnation += 10;
  EXPECT_TRUE([&] {
    proto::ResourceReport report;
    report.set_node_id(node_id(1).binary());
    report.set_incarnation(++incarnation);
    return core->report_resources(201, report, now).has_value();
  }());
  drop_node_pushes();
  EXPECT_EQ(add_job(1), job_id_from_int(2));  // Job ids are not used twice.
}

TEST_F(RecoveryTest, AnActorStillWaitsForItsArgumentsAfterARestart) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job(1);
  auto request = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  request.mutable_spec()->set_name("a");
  request.set_arguments(proto::RegisterActorRequest::FOLLOW);
  ActorId id = create(request);
  restart();
  register_node(201, back(1, {}, {job}));
  drop_node_pushes();
  EXPECT_TRUE(find_named("a").found());
  EXPECT_EQ(state(id), proto::ACTOR_DEPENDENCIES_UNREADY);
  EXPECT_TRUE(register_actor(request).ok());  // The answer may have been lost with the old head.
  EXPECT_TRUE(sink.creates.empty());
  Answer<proto::RegisterActorReply> lost;
  core->register_actor(arguments_of(request), now, lost.reply());
  // The old head had the arguments on its disk when it ended, and the answer was lost.
  auto [write, batch] = take(sink.persists);
  MemoryStorage::write(disk, batch);
  restart();
  register_node(202, back(1, {}, {job}));
  drop_node_pushes();
  EXPECT_TRUE(register_actor(arguments_of(request)).ok());
  auto create = take(sink.creates);
  EXPECT_EQ(create.request.spec().args_size(), 1);
  answer_create(create, created(1));
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
}

TEST_F(RecoveryTest, ANodeThatStaysAwayIsDead) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  JobId job = add_job(1), lost_job = add_job(2);
  auto request = actor_request(job, {{"CPU", 4}}, {{"CPU", 4}});
  request.mutable_spec()->set_max_restarts(1);
  ActorId id = alive_actor(request, 1);
  auto mortal_request = actor_request(job, {{"CPU", 4}}, {{"CPU", 4}});
  ActorId mortal = alive_actor(mortal_request, 2);
  ASSERT_EQ(core->view().actors().find(mortal)->node, node_id(2));
  remember(id);
  restart();
  register_node(201, back(1, {id}, {job}));
  drop_node_pushes();
  set_time(now.steady_us + 9'000'000);
  proto::ResourceReport heartbeat;
  heartbeat.set_node_id(node_id(1).binary());
  heartbeat.set_incarnation(++incarnation);
  ASSERT_TRUE(core->report_resources(201, heartbeat, now));
  drop_node_pushes();
  advance(1500);
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_EQ(state(mortal), proto::ACTOR_DEAD);
  EXPECT_EQ(info(mortal).death().kind(), proto::ExitInfo::NODE_DIED);
  EXPECT_FALSE(core->view().cluster().find(node_id(2))->alive());
  drop_node_pushes();
  auto push = take(sink.pushes);
  EXPECT_EQ(push.event.finished_jobs(0), lost_job.binary());
}

TEST_F(RecoveryTest, StartsThatWereUnderWayAreAwaitedThenRepeated) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job(1);
  ActorId finished_meanwhile = create(actor_request(job, {{"CPU", 1}}, {}));
  ActorId never_heard_of = create(actor_request(job, {{"CPU", 1}}, {}));
  sink.creates.clear();
  remember(finished_meanwhile);
  remembered[finished_meanwhile].set_state(proto::ACTOR_ALIVE);
  remembered[finished_meanwhile].mutable_address()->set_worker_id(worker_id(5).binary());
  restart();
  EXPECT_TRUE(sink.creates.empty());
  register_node(201, back(1, {finished_meanwhile}, {job}));
  EXPECT_EQ(state(finished_meanwhile), proto::ACTOR_ALIVE);
  EXPECT_EQ(info(finished_meanwhile).epoch(), 1);
  auto again = take(sink.creates);
  EXPECT_EQ(again.request.spec().actor_id(), never_heard_of.binary());
  // The first start may still be running on the node.
  EXPECT_EQ(again.request.epoch(), int64_t{2} << 32);
  answer_create(again, created(6));
  drop_node_pushes();
}

TEST_F(RecoveryTest, ActorsThatDiedMeanwhileAreRestartedOrDead) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job(1);
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->set_max_restarts(1);
  ActorId restarts = alive_actor(request, 1);
  ActorId dies = alive_actor(actor_request(job, {}, {}), 2);
  restart();
  register_node(201, back(1, {}, {job}));
  drop_node_pushes();
  EXPECT_EQ(state(dies), proto::ACTOR_DEAD);
  auto again = take(sink.creates);
  EXPECT_EQ(again.request.spec().actor_id(), restarts.binary());
  EXPECT_EQ(again.request.epoch(), int64_t{2} << 32);
  answer_create(again, created(3));
}

TEST_F(RecoveryTest, TheLastDeadActorsAreKnownWithTheirCause) {
  options.settings.dead_actors_kept = 2;
  restart();
  add_node(1, {{"CPU", 4}});
  JobId job = add_job(1);
  std::vector<ActorId> ended;
  for (int n = 1; n <= 3; ++n) {
    auto request = actor_request(job, {}, {});
    request.mutable_spec()->set_name("its name is free again");
    request.mutable_spec()->add_args()->set_inlined("large");
    ended.push_back(alive_actor(request, n));
    advance(10);
    EXPECT_TRUE(died(1, ended.back(), 1, proto::ExitInfo::SIGNALED));
  }
  EXPECT_EQ(disk.tables["actors"].size(), 2u);
  restart();
  EXPECT_EQ(core->view().actors().find(ended[0]), nullptr);  // The oldest is forgotten first.
  for (int n : {1, 2}) {
    EXPECT_EQ(state(ended[n]), proto::ACTOR_DEAD);
    EXPECT_EQ(info(ended[n]).death().kind(), proto::ExitInfo::SIGNALED);
    EXPECT_EQ(info(ended[n]).spec().args_size(), 0);
  }
  register_node(conn_of(1), back(1, {}, {job}));
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->set_name("its name is free again");
  ActorId next = create(request);
  answer_create(take(sink.creates), created(9));
  EXPECT_TRUE(died(1, next, 1, proto::ExitInfo::EXITED));
  EXPECT_EQ(core->view().actors().find(ended[1]), nullptr);
  EXPECT_EQ(disk.tables["actors"].size(), 2u);
  drop_node_pushes();
}

TEST_F(RecoveryTest, ANodeWhoseHostRefusesIsNotAwaited) {
  add_node(1, {{"CPU", 4}});
  restart();
  answer_probes(refused());
  advance(options.settings.node_reconnect_grace_ms);
  EXPECT_FALSE(core->view().cluster().find(node_id(1))->alive());
}

TEST_F(RecoveryTest, UnknownAndOutdatedActorsAreEnded) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job(1);
  ActorId id = alive_actor(actor_request(job, {}, {}), 1);
  remember(id);
  EXPECT_TRUE(kill(id, true));
  take(sink.kills);
  restart();
  auto request = back(1, {id}, {job});
  request.add_live_actors()->mutable_spec()->set_actor_id("garbage");
  register_node(201, request);
  drop_node_pushes();
  EXPECT_EQ(take(sink.kills).request.actor_id(), id.binary());
}

// A full disk takes no changes of actors. The changes happen all the same, and the actors' nodes
// tell the next head of them.
TEST_F(RecoveryTest, WhatTheDiskDidNotTakeOfActorsTheirNodeKnows) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job(1);
  auto immortal = [&] {
    auto request = actor_request(job, {}, {});
    request.mutable_spec()->set_max_restarts(-1);
    return request;
  };
  ActorId killed = alive_actor(immortal(), 1), left = alive_actor(immortal(), 2),
          started_again = alive_actor(immortal(), 3), crashed = alive_actor(immortal(), 4),
          killed_again = alive_actor(immortal(), 5);
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  EXPECT_TRUE(kill(killed, true));
  EXPECT_TRUE(take(sink.kills).request.for_good());
  EXPECT_TRUE(died(1, left, 1, proto::ExitInfo::INTENTIONAL));
  EXPECT_TRUE(died(1, started_again, 1, proto::ExitInfo::SIGNALED));
  answer_create(take(sink.creates), created(13));
  EXPECT_TRUE(kill(killed_again, false));
  EXPECT_FALSE(take(sink.kills).request.for_good());
  EXPECT_TRUE(died(1, killed_again, 1, proto::ExitInfo::KILLED_BY_USER));
  answer_create(take(sink.creates), created(15));
  EXPECT_TRUE(kill(killed_again, true));
  take(sink.kills);
  remember(started_again);
  disk.failure.reset();
  restart();
  EXPECT_EQ(state(killed), proto::ACTOR_ALIVE) << "the disk knows no better";
  auto request = back(1, {started_again}, {job});
  auto ended = [&](const ActorId& id, int worker, proto::ExitInfo::Kind kind, bool for_good) {
    proto::EndedActor& end = *request.add_ended_actors();
    end.set_actor_id(id.binary());
    end.mutable_death()->set_worker_id(worker_id(worker).binary());
    end.mutable_death()->set_kind(kind);
    end.mutable_death()->set_message("as its node tells it");
    end.mutable_death()->set_for_good(for_good);
  };
  ended(killed, 1, proto::ExitInfo::KILLED_BY_USER, true);
  ended(left, 2, proto::ExitInfo::INTENTIONAL, false);
  ended(started_again, 3, proto::ExitInfo::SIGNALED, false);
  ended(crashed, 4, proto::ExitInfo::SIGNALED, false);
  ended(killed_again, 15, proto::ExitInfo::KILLED_BY_USER, true);
  request.add_ended_actors()->set_actor_id("garbage");
  register_node(201, request);
  drop_node_pushes();
  EXPECT_EQ(state(killed), proto::ACTOR_DEAD);
  EXPECT_EQ(info(killed).death().kind(), proto::ExitInfo::KILLED_BY_USER);
  EXPECT_EQ(state(left), proto::ACTOR_DEAD);
  EXPECT_EQ(info(left).death().message(), "as its node tells it");
  EXPECT_EQ(state(killed_again), proto::ACTOR_DEAD);
  EXPECT_EQ(state(started_again), proto::ACTOR_ALIVE);
  EXPECT_EQ(info(started_again).address().worker_id(), worker_id(13).binary());
  EXPECT_EQ(info(started_again).epoch(), 2);
  EXPECT_EQ(info(started_again).num_restarts(), 1);
  auto start = take(sink.creates);
  EXPECT_EQ(start.request.spec().actor_id(), crashed.binary());
  EXPECT_EQ(info(crashed).death().message(), "as its node tells it");
  answer_create(start, created(6));
  sink.kills.clear();  // Requests for processes that have ended do no harm.
}

TEST_F(RecoveryTest, AnActorThatIsBeingStartedIsNotStartedElsewhere) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  const JobId job = add_job(1);
  const ActorId id = create(actor_request(job, {{"CPU", 1}}, {{"CPU", 1}}));
  const auto order = take(sink.creates);
  const int n = order.node.node == node_id(1) ? 1 : 2;
  remember(id);
  remembered[id].set_state(proto::ACTOR_PENDING);
  restart();
  for (int node : {1, 2})
    register_node(200 + static_cast<uint64_t>(node),
                  node == n ? back(node, {id}, {job}) : back(node, {}, {job}));
  drop_node_pushes();
  EXPECT_EQ(state(id), proto::ACTOR_PENDING);
  EXPECT_TRUE(sink.creates.empty());
  proto::ActorStarted started;
  started.set_actor_id(id.binary());
  started.set_epoch(order.request.epoch());
  started.mutable_address()->set_worker_id(worker_id(7).binary());
  EXPECT_TRUE(core->actor_started(200 + static_cast<uint64_t>(n), started, now));
  commit();
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_EQ(info(id).address().worker_id(), worker_id(7).binary());
}

// A node that is not back yet has a later start, which a full disk did not take.
TEST_F(RecoveryTest, ARefusedStartWaitsUntilAllNodesAreBack) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  const JobId job = add_job(1);
  auto request = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
  request.mutable_spec()->set_max_restarts(-1);
  const ActorId id = alive_actor(request, 1);
  remember(id);
  proto::ActorInfo later = remembered[id];
  later.set_epoch(later.epoch() + 1);
  later.mutable_address()->set_worker_id(worker_id(9).binary());
  later.mutable_address()->set_node_id(node_id(2).binary());
  // The disk has a start that is under way.
  proto::ActorInfo starting = remembered[id];
  starting.set_state(proto::ACTOR_PENDING);
  starting.clear_address();
  disk.tables[table::kActors][id.binary()] = starting.SerializeAsString();
  restart();
  remembered[id] = starting;
  register_node(201, back(1, {id}, {job}));
  drop_node_pushes();
  proto::ActorDied refused;
  refused.set_actor_id(id.binary());
  refused.set_epoch(starting.epoch());
  refused.mutable_death()->set_kind(proto::ExitInfo::UNSCHEDULABLE);
  EXPECT_TRUE(core->actor_died(201, refused, now));
  commit();
  EXPECT_TRUE(sink.creates.empty());
  remembered[id] = later;
  register_node(202, back(2, {id}, {}));
  drop_node_pushes();
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_EQ(info(id).address().worker_id(), worker_id(9).binary());
  EXPECT_TRUE(sink.creates.empty());
}

TEST_F(RecoveryTest, AKilledActorStaysDeadAlthoughANodeHasALaterStart) {
  add_node(1, {{"CPU", 4}});
  const JobId job = add_job(1);
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->set_max_restarts(-1);
  const ActorId id = alive_actor(request, 1);
  remember(id);
  remembered[id].set_epoch(remembered[id].epoch() + 1);
  remembered[id].mutable_address()->set_worker_id(worker_id(9).binary());
  restart();
  EXPECT_TRUE(kill(id, true));
  register_node(201, back(1, {id}, {job}));
  drop_node_pushes();
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
  ASSERT_FALSE(sink.kills.empty());
  EXPECT_EQ(sink.kills.back().request.worker_id(), worker_id(9).binary());
  sink.kills.clear();
}

TEST_F(RecoveryTest, AStartIsEndedIfTheActorWasKilledBeforeItsNodeCameBack) {
  add_node(1, {{"CPU", 4}});
  const JobId job = add_job(1);
  const ActorId id = create(actor_request(job, {}, {}));
  take(sink.creates);
  remember(id);
  remembered[id].set_state(proto::ACTOR_PENDING);
  restart();
  EXPECT_TRUE(kill(id, true));
  register_node(201, back(1, {id}, {job}));
  drop_node_pushes();
  EXPECT_EQ(take(sink.kills).request.actor_id(), id.binary());
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
  EXPECT_TRUE(sink.creates.empty());
}

// No node knows of an actor that has no process, so the request to kill it fails if the disk
// refuses.
TEST_F(RecoveryTest, KillingAnActorWithoutAProcessSucceedsOnceTheDiskHasIt) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job(1);
  ActorId queued = create(actor_request(job, {{"CPU", 2}}, {}));
  ActorId running = alive_actor(actor_request(job, {}, {}), 1);
  ASSERT_EQ(state(queued), proto::ACTOR_PENDING);
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  for (int i = 0; i < 2; ++i) {
    Status refused = kill(queued, true);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kOutOfDisk);
    EXPECT_NE(refused.error().message.find("comes back"), std::string::npos);
    EXPECT_EQ(state(queued), proto::ACTOR_DEAD);
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(kill(running, true)) << "its node knows";
  take(sink.kills);
  disk.failure.reset();
  EXPECT_TRUE(kill(queued, true));
  restart();
  EXPECT_EQ(state(queued), proto::ACTOR_DEAD);
}

TEST_F(RecoveryTest, OfTwoStartsOfAnActorTheLaterOneIsRightWhicheverNodeComesFirst) {
  for (int first : {1, 2}) {
    add_node(1, {{"CPU", 4}});
    JobId job = add_job(1);
    auto request = actor_request(job, {}, {});
    request.mutable_spec()->set_detached(true);
    request.mutable_spec()->set_max_restarts(-1);
    ActorId id = alive_actor(request, 1);
    remember(id);
    proto::ActorInfo earlier = remembered[id];
    // The first node is cut off, and the disk takes nothing more.
    add_node(2, {{"CPU", 4}});
    disk.failure = make_error(Code::kOutOfDisk, "no space left");
    lose_node(1);
    answer_create(take(sink.creates), created(2));
    remember(id);
    EXPECT_EQ(remembered[id].address().node_id(), node_id(2).binary());
    disk.failure.reset();
    restart();
    auto one = back(1, {}, {}), two = back(2, {id}, {});
    *one.add_live_actors() = earlier;
    register_node(201, first == 1 ? one : two);
    register_node(202, first == 1 ? two : one);
    drop_node_pushes();
    EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
    EXPECT_EQ(info(id).address().node_id(), node_id(2).binary());
    EXPECT_EQ(info(id).address().worker_id(), worker_id(2).binary());
    ASSERT_EQ(sink.kills.size(), 1u);
    EXPECT_EQ(take(sink.kills).request.worker_id(), worker_id(1).binary());
    EXPECT_TRUE(sink.creates.empty());
    sink.pushes.clear();
    disk = MemoryStorage::Disk();
    restart();
    incarnation = 0;
  }
}

TEST_F(RecoveryTest, AHeadKnowsItsOwnStartsBetterThanNodes) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  ActorId id = alive_actor(actor_request(add_job(1), {}, {}), 1);
  remember(id);
  remembered[id].set_epoch(9);
  remembered[id].mutable_address()->set_worker_id(worker_id(2).binary());
  core->connection_closed(conn_of(2), now);
  register_node(302, back(2, {id}, {}));
  EXPECT_EQ(take(sink.kills).request.worker_id(), worker_id(2).binary());
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_EQ(info(id).epoch(), 1);
  drop_node_pushes();
}

TEST_F(RecoveryTest, JobsOfDriversThatLeftMeanwhileEnd) {
  add_node(1, {});
  JobId stays = add_job(1), left = add_job(1);
  restart();
  JobId stranger = job_id_from_int(77);
  auto answer = register_node(201, back(1, {}, {stays, stranger}));
  ASSERT_EQ(answer->dead_jobs_size(), 1);
  EXPECT_EQ(answer->dead_jobs(0), stranger.binary());
  drop_node_pushes();
  while (!sink.pushes.empty()) {
    auto push = take(sink.pushes);
    ASSERT_EQ(push.event.finished_jobs_size(), 1);
    EXPECT_EQ(push.event.finished_jobs(0), left.binary());
  }
}

TEST_F(RecoveryTest, SubmittedJobsAreKnownAndFollowTheirNode) {
  add_node(1, {});
  for (const char* id : {"one", "two"}) {
    proto::SubmitJobRequest request;
    request.set_submission_id(id);
    request.set_entrypoint("true");
    Answer<proto::SubmitJobReply> answer;
    core->submit_job(request, now, answer.reply());
    commit();
    ASSERT_TRUE(answer.ok());
  }
  sink.starts.clear();
  core->start_job_answered("one", node_id(1), {}, now);
  commit();
  restart();
  EXPECT_EQ(core->view().submitted_job("one")->status(), "RUNNING");
  EXPECT_EQ(core->view().submitted_job("two")->status(), "PENDING");
  register_node(201, back(1, {}, {}));
  EXPECT_EQ(take(sink.starts).request.job().submission_id(), "two");
  core->start_job_answered("two", node_id(1), make_error(Code::kAlreadyExists, "runs"), now);
  commit();
  EXPECT_EQ(core->view().submitted_job("two")->status(), "RUNNING");
  drop_node_pushes();
}

TEST_F(RecoveryTest, DamagedRecordsStopTheStartWithTheirName) {
  add_node(1, {});
  disk.tables["nodes"][node_id(1).binary()] = "\xff\xff nonsense";
  RecordingSink other;
  HeadCore fresh(options, other);
  Status loaded = fresh.load(disk.tables, now);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Code::kIo);
  EXPECT_NE(loaded.error().message.find("nodes"), std::string::npos);
}

TEST_F(RecoveryTest, AnotherClusterIdIsRefused) {
  HeadOptions other_options = options;
  other_options.cluster_id = std::string(ClusterId::kSize, 'x');
  RecordingSink other;
  HeadCore fresh(other_options, other);
  EXPECT_EQ(fresh.load(disk.tables, now).error().code, Code::kWrongCluster);
}

}  // namespace
}  // namespace rt::head
