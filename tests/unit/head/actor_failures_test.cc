// Actors whose nodes, workers, owners or jobs fail: restarts, causes of death, and messages that
// come late.
#include "tests/unit/head/core_fixture.h"

namespace rt::head {
namespace {

class ActorFailuresTest : public HeadTest {
 protected:
  proto::RegisterActorRequest restartable(JobId job, int64_t max_restarts) {
    auto request = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
    request.mutable_spec()->set_max_restarts(max_restarts);
    return request;
  }
};

TEST_F(ActorFailuresTest, NodeDeathRestartsItsActorsElsewhere) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job(1);
  ActorId lasting = alive_actor(restartable(job, 1), 1);
  add_node(2, {{"CPU", 2}});
  ActorId restarts = alive_actor(restartable(job, -1), 2),
          mortal = alive_actor(restartable(job, 0), 3);
  add_node(3, {{"CPU", 2}});
  lose_node(2);
  EXPECT_EQ(state(mortal), proto::ACTOR_DEAD);
  EXPECT_EQ(info(mortal).death().kind(), proto::ExitInfo::NODE_DIED);
  EXPECT_EQ(info(mortal).death().ip(), "10.0.0.2");
  EXPECT_EQ(state(restarts), proto::ACTOR_RESTARTING);
  EXPECT_EQ(info(restarts).num_restarts(), 1);
  auto again = take(sink.creates);
  EXPECT_EQ(again.node.node, node_id(3));
  EXPECT_EQ(again.request.epoch(), 2);
  answer_create(again, created(4));
  EXPECT_EQ(state(restarts), proto::ACTOR_ALIVE);
  EXPECT_EQ(state(lasting), proto::ACTOR_ALIVE);
}

TEST_F(ActorFailuresTest, ANodeThatReconnectsWithinTheGraceKeepsItsActors) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = alive_actor(restartable(job, 0), 1);
  core->connection_closed(conn_of(1), now);
  advance(1000);
  auto back = registration(1, {{"CPU", 2}});
  *back.add_live_actors() = info(id);
  back.add_live_jobs()->set_job_id(job.binary());
  auto answer = register_node(301, back);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->dead_jobs_size(), 0);
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  drop_node_pushes();
}

TEST_F(ActorFailuresTest, ActorsMissingAtReregistrationHaveDied) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  ActorId gone = alive_actor(restartable(job, 0), 1);
  ActorId restarts = alive_actor(restartable(job, 1), 2);
  ActorId starting = create(restartable(job, 0));
  auto order = take(sink.creates);
  core->connection_closed(conn_of(1), now);
  answer_create(order, make_error(Code::kUnavailable, "connection lost"));
  auto back = registration(1, {{"CPU", 4}});
  back.add_live_jobs()->set_job_id(job.binary());
  register_node(301, back);
  drop_node_pushes();
  EXPECT_EQ(state(gone), proto::ACTOR_DEAD);
  EXPECT_EQ(state(restarts), proto::ACTOR_RESTARTING);
  // The first order may have been lost, so it is repeated with the same epoch.
  auto repeated = take(sink.creates);
  EXPECT_EQ(repeated.request.epoch(), order.request.epoch());
  EXPECT_EQ(repeated.node.conn, 301u);
  answer_create(repeated, created(3));
  EXPECT_EQ(state(starting), proto::ACTOR_ALIVE);
  answer_create(take(sink.creates), created(4));
  EXPECT_EQ(state(restarts), proto::ACTOR_ALIVE);
}

TEST_F(ActorFailuresTest, AStartIsNotARestart) {
  add_node(1, {});
  add_node(2, {{"CPU", 1}});
  JobId job = add_job(1);
  ActorId id = create(restartable(job, 0));
  auto order = take(sink.creates);
  lose_node(2);
  EXPECT_EQ(state(id), proto::ACTOR_PENDING);
  add_node(3, {{"CPU", 1}});
  auto again = take(sink.creates);
  EXPECT_EQ(again.request.epoch(), 2);
  EXPECT_EQ(again.request.num_restarts(), 0);
  answer_create(order, created(1));  // A dead node gets no order to end the stale actor.
  answer_create(again, created(2));
  EXPECT_EQ(info(id).address().worker_id(), worker_id(2).binary());
}

TEST_F(ActorFailuresTest, StaleStartsAreEnded) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = create(restartable(job, 0));
  auto order = take(sink.creates);
  EXPECT_TRUE(kill(id, true));
  take(sink.kills);
  answer_create(order, created(1));  // The constructor had finished before the kill arrived.
  auto stray = take(sink.kills);
  EXPECT_EQ(stray.request.worker_id(), worker_id(1).binary());
  proto::ActorStarted started;
  started.set_actor_id(id.binary());
  started.set_epoch(1);
  started.mutable_address()->set_worker_id(worker_id(1).binary());
  EXPECT_TRUE(core->actor_started(conn_of(1), started, now));
  take(sink.kills);
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
}

TEST_F(ActorFailuresTest, TheConstructorsErrorIsFinal) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = create(restartable(job, -1));
  proto::CreateActorReply failed;
  failed.mutable_failure()->set_kind(proto::ExitInfo::INIT_FAILED);
  failed.mutable_failure()->set_creation_error("pickled");
  answer_create(take(sink.creates), failed);
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
  EXPECT_EQ(info(id).death().creation_error(), "pickled");
}

TEST_F(ActorFailuresTest, ACrashInTheConstructorCountsAsADeath) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = create(restartable(job, 1));
  proto::CreateActorReply crashed;
  crashed.mutable_failure()->set_kind(proto::ExitInfo::SIGNALED);
  answer_create(take(sink.creates), crashed);
  EXPECT_EQ(info(id).num_restarts(), 1);
  answer_create(take(sink.creates), crashed);
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
}

TEST_F(ActorFailuresTest, ACrashLoopIsSlowedDown) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = create(restartable(job, -1));
  proto::CreateActorReply crashed;
  crashed.mutable_failure()->set_kind(proto::ExitInfo::SIGNALED);
  int starts = 0;
  for (int64_t t = 0; t < 10'000; t += 10) {
    while (!sink.creates.empty()) {
      ++starts;
      answer_create(take(sink.creates), crashed);
    }
    advance(10);
    if (t % 500 == 0) report(1, {{"CPU", 2}});
  }
  EXPECT_GE(starts, 5);
  EXPECT_LE(starts, 20);
  EXPECT_TRUE(kill(id, true));
  sink.kills.clear();
  sink.creates.clear();
}

TEST_F(ActorFailuresTest, ThePauseOfACrashLoopFallsAgainWithLivesThatLast) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = create(restartable(job, -1));
  int worker = 0;
  // Starts the actor, ends it after a while, and returns the pause until its next start.
  auto pause_after = [&](int64_t life_ms) {
    answer_create(take(sink.creates), created(++worker));
    advance_alive(life_ms, {1});
    EXPECT_TRUE(died(1, id, info(id).epoch(), proto::ExitInfo::SIGNALED));
    int64_t pause_ms = 0;
    for (; sink.creates.empty() && pause_ms < 60'000; pause_ms += 10) advance_alive(10, {1});
    return pause_ms;
  };
  int64_t longest_ms = 0;
  for (int i = 0; i < 8; ++i) longest_ms = pause_after(0);
  EXPECT_EQ(longest_ms, options.settings.actor_restart_backoff_max_ms);
  const int64_t after_half_a_second_ms = pause_after(500);
  EXPECT_LE(after_half_a_second_ms, 1000);
  EXPECT_GT(after_half_a_second_ms, 0);
  EXPECT_EQ(pause_after(500), 0);
  EXPECT_GT(pause_after(0), 0) << "it is still a loop of crashes";
  EXPECT_EQ(pause_after(2000), 0);
  EXPECT_EQ(pause_after(0), 0) << "a healthy life forgives all that came before it";
  sink.creates.clear();
}

TEST_F(ActorFailuresTest, ANodeThatCannotStartItIsTriedABoundedNumberOfTimes) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = create(restartable(job, 0));
  int attempts = 0;
  for (int i = 0; i < 100 && state(id) != proto::ACTOR_DEAD; ++i) {
    while (!sink.creates.empty()) {
      ++attempts;
      answer_create(take(sink.creates), make_error(Code::kInternal, "fork server is broken"));
    }
    advance_alive(500, {1});
  }
  EXPECT_EQ(attempts, options.settings.actor_start_attempts);
  EXPECT_NE(info(id).death().message().find("fork server is broken"), std::string::npos);
  EXPECT_TRUE(take(sink.kills).request.for_good());
}

TEST_F(ActorFailuresTest, KillWithRestartGoesThroughTheNode) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = alive_actor(restartable(job, 1), 1);
  EXPECT_TRUE(kill(id, false));
  EXPECT_EQ(take(sink.kills).request.worker_id(), worker_id(1).binary());
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_TRUE(died(1, id, 1, proto::ExitInfo::KILLED_BY_USER));
  answer_create(take(sink.creates), created(2));
  EXPECT_EQ(info(id).epoch(), 2);
  EXPECT_TRUE(died(1, id, 1, proto::ExitInfo::SIGNALED));  // An earlier epoch is ignored.
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
}

TEST_F(ActorFailuresTest, OutOfScopeEndsAfterQueuedCalls) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = alive_actor(restartable(job, -1), 1);
  EXPECT_TRUE(kill(id, true, proto::ExitInfo::OUT_OF_SCOPE, true));
  EXPECT_TRUE(take(sink.kills).request.graceful());
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  EXPECT_TRUE(died(1, id, 1, proto::ExitInfo::EXITED));
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
  EXPECT_EQ(info(id).death().kind(), proto::ExitInfo::OUT_OF_SCOPE);
  EXPECT_TRUE(kill(id, true));  // Killing a dead actor succeeds and does nothing.
  EXPECT_EQ(kill(make_actor_id(job, 999, 0), true).error().code, Code::kNotFound);
}

// An actor without handles still finishes the calls it has received. Its name is free at once, so
// that a successor need not wait.
TEST_F(ActorFailuresTest, ANameIsFreeOnceNobodyHasAHandle) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  auto request = restartable(job, 0);
  request.mutable_spec()->set_name("x");
  ActorId first = alive_actor(request, 1);
  EXPECT_TRUE(kill(first, true, proto::ExitInfo::OUT_OF_SCOPE, true));
  take(sink.kills);
  proto::GetActorRequest by_name;
  by_name.set_name("x");
  by_name.set_ray_namespace(request.spec().ray_namespace());
  EXPECT_FALSE(core->view().get_actor(by_name)->found());
  auto again = restartable(job, 0);
  again.mutable_spec()->set_name("x");
  ActorId second = alive_actor(again, 2);
  EXPECT_TRUE(died(1, first, 1, proto::ExitInfo::EXITED));
  EXPECT_EQ(state(first), proto::ACTOR_DEAD);
  ASSERT_TRUE(core->view().get_actor(by_name)->found());
  EXPECT_EQ(core->view().get_actor(by_name)->actor().spec().actor_id(), second.binary());
}

TEST_F(ActorFailuresTest, AKillThatMissedItsNodeIsRepeated) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId dead = alive_actor(restartable(job, 0), 1), leaving = alive_actor(restartable(job, 0), 2);
  auto back = registration(1, {{"CPU", 2}});
  *back.add_live_actors() = info(dead);
  *back.add_live_actors() = info(leaving);
  back.add_live_jobs()->set_job_id(job.binary());
  core->connection_closed(conn_of(1), now);
  EXPECT_TRUE(kill(dead, true));
  EXPECT_TRUE(kill(leaving, true, proto::ExitInfo::OUT_OF_SCOPE, true));
  EXPECT_TRUE(sink.kills.empty());
  register_node(301, back);
  ASSERT_EQ(sink.kills.size(), 2u);
  EXPECT_EQ(take(sink.kills).request.actor_id(), dead.binary());
  EXPECT_TRUE(take(sink.kills).request.graceful());
  drop_node_pushes();
}

TEST_F(ActorFailuresTest, JobEndKillsAllButDetachedActors) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job(), other_job = add_job();
  ActorId normal = alive_actor(restartable(job, -1), 1);
  auto detached_request = actor_request(job, {}, {});
  detached_request.mutable_spec()->set_detached(true);
  detached_request.mutable_spec()->set_name("d");
  ActorId detached = alive_actor(detached_request, 2);
  ActorId other = alive_actor(actor_request(other_job, {}, {}), 3);
  ActorId pending = create(actor_request(job, {{"CPU", 2}}, {{"CPU", 2}}));
  EXPECT_TRUE(sink.creates.empty());
  finish_job(job);
  EXPECT_EQ(take(sink.kills).request.actor_id(), normal.binary());
  auto push = take(sink.pushes);
  EXPECT_EQ(push.conn, conn_of(1));
  EXPECT_EQ(push.event.finished_jobs(0), job.binary());
  EXPECT_EQ(push.event.over_jobs_size(), 0);
  EXPECT_EQ(state(normal), proto::ACTOR_DEAD);
  EXPECT_EQ(info(normal).death().kind(), proto::ExitInfo::JOB_FINISHED);
  EXPECT_EQ(state(pending), proto::ACTOR_DEAD);
  EXPECT_EQ(state(detached), proto::ACTOR_ALIVE);
  EXPECT_EQ(state(other), proto::ACTOR_ALIVE);
  finish_job(job);  // A repeated message does no harm.
  // An actor that a detached actor creates after the end of the job lives as long as its creator.
  auto child_request = actor_request(job, {}, {});
  child_request.mutable_spec()->mutable_owner()->set_worker_id(worker_id(2).binary());
  ActorId child = alive_actor(child_request, 4);
  // The same holds for actors that its tasks create, although the head does not know the processes
  // of tasks.
  auto of_task_request = actor_request(job, {}, {});
  of_task_request.mutable_spec()->mutable_owner()->set_worker_id(worker_id(77).binary());
  of_task_request.mutable_spec()->mutable_job_config()->set_outlives_job(true);
  ActorId of_task = alive_actor(of_task_request, 5);
  EXPECT_TRUE(died(1, detached, 1, proto::ExitInfo::SIGNALED));
  EXPECT_EQ(state(child), proto::ACTOR_DEAD);
  EXPECT_EQ(info(child).death().kind(), proto::ExitInfo::OWNER_DIED);
  EXPECT_EQ(take(sink.kills).request.actor_id(), child.binary());
  EXPECT_EQ(state(of_task), proto::ACTOR_ALIVE);
  proto::DeadWorkers report;
  report.add_worker_ids(worker_id(77).binary());
  sink.pushes.clear();
  EXPECT_TRUE(core->dead_workers(conn_of(1), report, now));
  commit();
  EXPECT_EQ(state(of_task), proto::ACTOR_DEAD);
  sink.kills.clear();
  std::vector<std::string> over;
  for (const auto& pushed : sink.pushes)
    over.insert(over.end(), pushed.event.over_jobs().begin(), pushed.event.over_jobs().end());
  EXPECT_EQ(over, std::vector<std::string>{job.binary()});
  sink.pushes.clear();
}

// A process sends what it registers over a connection of its own, which the head may read later
// than the node's news that the process has ended.
TEST_F(ActorFailuresTest, AnActorThatIsRegisteredAfterTheEndOfItsOwnerIsDead) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  proto::DeadWorkers report;
  report.add_worker_ids(worker_id(50).binary());
  EXPECT_TRUE(core->dead_workers(conn_of(1), report, now));
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->mutable_owner()->set_worker_id(worker_id(50).binary());
  create(request);
  EXPECT_EQ(info(ActorId::from_binary(request.spec().actor_id())).death().kind(),
            proto::ExitInfo::OWNER_DIED);
  EXPECT_TRUE(sink.creates.empty());
  request = actor_request(job, {}, {});
  request.mutable_spec()->mutable_owner()->set_worker_id(worker_id(50).binary());
  request.mutable_spec()->set_detached(true);
  create(request);
  EXPECT_EQ(take(sink.creates).request.spec().actor_id(), request.spec().actor_id());
  sink.pushes.clear();
}

// Only its owner can deliver the arguments of an actor, so without it even a detached one ends.
TEST_F(ActorFailuresTest, AnActorThatWaitsForItsArgumentsEndsWithItsOwner) {
  add_node(1, {{"CPU", 2}});
  add_node(2, {{"CPU", 2}});
  JobId job = add_job(), other_job = add_job();
  auto waiting = [&](JobId of_job, const WorkerId& owner, int node) {
    auto request = actor_request(of_job, {}, {});
    request.mutable_spec()->set_detached(true);
    request.mutable_spec()->mutable_owner()->set_worker_id(owner.binary());
    request.mutable_spec()->mutable_owner()->set_node_id(node_id(node).binary());
    request.set_arguments(proto::RegisterActorRequest::FOLLOW);
    create(request);
    return request;
  };
  auto id_of = [](const proto::RegisterActorRequest& request) {
    return ActorId::from_binary(request.spec().actor_id());
  };
  auto of_worker = waiting(job, worker_id(50), 1), delivered = waiting(job, worker_id(50), 1);
  auto on_lost_node = waiting(job, worker_id(51), 2);
  auto of_driver = waiting(other_job, driver_worker_id(other_job), 1);
  EXPECT_TRUE(register_actor(arguments_of(delivered)).ok());
  answer_create(take(sink.creates), created(1));
  proto::DeadWorkers report;
  report.add_worker_ids(worker_id(50).binary());
  EXPECT_TRUE(core->dead_workers(conn_of(1), report, now));
  commit();
  EXPECT_EQ(info(id_of(of_worker)).death().kind(), proto::ExitInfo::OWNER_DIED);
  EXPECT_EQ(state(id_of(delivered)), proto::ACTOR_ALIVE);
  EXPECT_EQ(state(id_of(on_lost_node)), proto::ACTOR_DEPENDENCIES_UNREADY);
  lose_node(2);
  EXPECT_EQ(info(id_of(on_lost_node)).death().kind(), proto::ExitInfo::OWNER_DIED);
  finish_job(other_job);
  EXPECT_EQ(state(id_of(of_driver)), proto::ACTOR_DEAD);
  sink.pushes.clear();
}

TEST_F(ActorFailuresTest, ADeadOwnersActorsEnd) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->mutable_owner()->set_worker_id(worker_id(50).binary());
  ActorId id = alive_actor(request, 1);
  auto grandchild_request = actor_request(job, {}, {});
  grandchild_request.mutable_spec()->mutable_owner()->set_worker_id(worker_id(1).binary());
  ActorId grandchild = alive_actor(grandchild_request, 2);
  proto::DeadWorkers report;
  report.add_worker_ids(worker_id(50).binary());
  EXPECT_TRUE(core->dead_workers(conn_of(1), report, now));
  commit();
  EXPECT_EQ(state(id), proto::ACTOR_DEAD);
  EXPECT_EQ(state(grandchild), proto::ACTOR_DEAD);
  EXPECT_EQ(sink.kills.size(), 2u);
  sink.kills.clear();
  EXPECT_EQ(take(sink.pushes).event.dead_workers(0), worker_id(50).binary());
  report.add_worker_ids("short");
  EXPECT_EQ(core->dead_workers(conn_of(1), report, now).error().code, Code::kInvalid);
  EXPECT_EQ(core->dead_workers(77, report, now).error().code, Code::kNotFound);
}

TEST_F(ActorFailuresTest, RestartsGoOnWithAFullDisk) {
  add_node(1, {{"CPU", 2}});
  JobId job = add_job();
  ActorId id = alive_actor(restartable(job, 1), 1);
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  EXPECT_TRUE(died(1, id, 1, proto::ExitInfo::SIGNALED));
  answer_create(take(sink.creates), created(2));
  EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  proto::ActorInfo record;
  ASSERT_TRUE(record.ParseFromString(disk.tables["actors"][id.binary()]));
  EXPECT_EQ(record.epoch(), 2);  // The failed write was repeated when there was space again.
  EXPECT_EQ(record.state(), proto::ACTOR_ALIVE);
}

}  // namespace
}  // namespace rt::head
