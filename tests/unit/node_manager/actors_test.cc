// Actors and entrypoints in the node-manager's core: resources, constructors, deaths and kills.
#include "core_fixture.h"
#include "daemons/node_manager/core/registration.h"

namespace rt::node {
namespace {

TEST_F(NodeCoreTest, AnActorNeedsACpuToBePlacedAndHoldsNoneAfterwards) {
  make(1, 1);
  WorkerId id = start_worker();
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  EXPECT_EQ(RecordingSink::take(sink.starts), id);
  EXPECT_EQ(free_cpus(), 0);
  constructed(request);
  auto created = RecordingSink::take(sink.created);
  EXPECT_TRUE(created.reply.ok());
  EXPECT_EQ(created.reply.address().worker_id(), id.binary());
  EXPECT_EQ(free_cpus(), 1);
  sink.spawns.clear();  // A warm worker replaces the one that the actor took.
}

TEST_F(NodeCoreTest, AnEntrypointHoldsItsResourcesUntilItEnds) {
  make(2);
  ResourceSet one = *ResourceSet::from_map({{"CPU", 1}}),
              two = *ResourceSet::from_map({{"CPU", 2}});
  ASSERT_TRUE(core->hold_for_job("a", one, now()));
  EXPECT_EQ(free_cpus(), 1);
  EXPECT_EQ(core->hold_for_job("a", one, now()).error().code, Code::kAlreadyExists);
  EXPECT_EQ(core->hold_for_job("b", two, now()).error().code, Code::kResourceExhausted);
  ASSERT_TRUE(core->hold_for_job("nothing", {}, now()));
  core->check_invariants();
  core->release_job("a", now());
  core->release_job("a", now());
  EXPECT_EQ(free_cpus(), 2);
  ASSERT_TRUE(core->hold_for_job("b", two, now()));
  core->check_invariants();
  core->release_job("b", now());
  sink.spawns.clear();
}

TEST_F(NodeCoreTest, AnActorHoldsItsResourcesForLife) {
  make(2);
  auto request = actor(1, {{"CPU", 2}}, {{"CPU", 1}});
  create(request);
  WorkerId id = start_worker();
  RecordingSink::take(sink.starts);
  constructed(request);
  RecordingSink::take(sink.created);
  EXPECT_EQ(free_cpus(), 1);
  core->worker_disconnected(id, now());
  RecordingSink::take(sink.kills);
  EXPECT_EQ(free_cpus(), 2);
  EXPECT_TRUE(sink.actor_deaths.empty());  // Reported with the exit status, which tells the cause.
  reap(id, 0, 3, "boom\n");
  auto died = RecordingSink::take(sink.actor_deaths);
  EXPECT_EQ(died.epoch(), 1);
  EXPECT_EQ(died.death().kind(), proto::ExitInfo::EXITED);
  EXPECT_EQ(died.death().exit_code(), 3);
  EXPECT_EQ(died.death().log_tail(), "boom\n");
  RecordingSink::take(sink.deaths);
  EXPECT_TRUE(core->view().actors().empty());
}

TEST_F(NodeCoreTest, TwentyActorsShareOneCpuForPlacement) {
  make(1);
  std::vector<proto::CreateActorRequest> requests;
  for (uint32_t i = 0; i < 20; ++i) {
    requests.push_back(actor(i + 1, {{"CPU", 1}}, {}));
    create(requests.back());
  }
  for (const auto& request : requests) {
    start_worker();
    RecordingSink::take(sink.starts);
    constructed(request);
    EXPECT_TRUE(RecordingSink::take(sink.created).reply.ok());
  }
  EXPECT_EQ(free_cpus(), 1);
}

// A worker that has run tasks may own values that others hold, and would take them along when its
// actor ends.
TEST_F(NodeCoreTest, AnActorTakesOnlyAWorkerThatHasRunNoTask) {
  make(2, 2);
  WorkerId first = start_worker(), second = start_worker();
  want(1, demand(1));
  auto lease = take_grant();
  give_back(lease);
  auto one = actor(1, {{"CPU", 1}}, {});
  create(one);
  EXPECT_EQ(RecordingSink::take(sink.starts), worker_of(lease) == first ? second : first);
  constructed(one);
  RecordingSink::take(sink.created);
  start_worker();
  want(1, demand(2));
  auto a = take_grant(), b = take_grant();
  give_back(a);
  give_back(b);
  create(actor(2, {{"CPU", 1}}, {}));
  WorkerId fresh = start_worker();  // None is idle that has not been used.
  EXPECT_EQ(RecordingSink::take(sink.starts), fresh);
}

TEST_F(NodeCoreTest, AFailedConstructorEndsTheWorkerAndSaysWhy) {
  make(1);
  auto request = actor(1, {{"CPU", 1}}, {{"CPU", 1}});
  create(request);
  WorkerId id = start_worker();
  RecordingSink::take(sink.starts);
  proto::CreateActorReply raised;
  raised.mutable_failure()->set_creation_error("pickled");
  core->actor_start_done(ActorId::from_binary(request.spec().actor_id()), 1, raised, now());
  core->check_invariants();
  auto created = RecordingSink::take(sink.created);
  EXPECT_FALSE(created.reply.ok());
  EXPECT_EQ(created.reply.failure().kind(), proto::ExitInfo::INIT_FAILED);
  EXPECT_EQ(created.reply.failure().creation_error(), "pickled");
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  EXPECT_EQ(free_cpus(), 1);
  reap(id, SIGKILL);
  RecordingSink::take(sink.deaths);
}

TEST_F(NodeCoreTest, ADeathInTheConstructorAnswersTheCreation) {
  make(1);
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  WorkerId id = start_worker();
  RecordingSink::take(sink.starts);
  reap(id, SIGKILL);
  auto created = RecordingSink::take(sink.created);
  EXPECT_EQ(created.reply.failure().kind(), proto::ExitInfo::SIGNALED);
  RecordingSink::take(sink.deaths);
  EXPECT_EQ(free_cpus(), 1);
}

TEST_F(NodeCoreTest, ABrokenConnectionInTheConstructorWaitsForHowTheProcessEnded) {
  make(1);
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  WorkerId id = start_worker();
  RecordingSink::take(sink.starts);
  core->actor_start_done(ActorId::from_binary(request.spec().actor_id()), 1,
                         make_error(Code::kUnavailable, "the other side closed the connection"),
                         now());
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  EXPECT_TRUE(sink.created.empty());
  reap(id, 0, 4);
  auto created = RecordingSink::take(sink.created);
  EXPECT_EQ(created.reply.failure().kind(), proto::ExitInfo::EXITED);
  EXPECT_EQ(created.reply.failure().exit_code(), 4);
  EXPECT_NE(created.reply.failure().message().find("exited with code 4"), std::string::npos)
      << created.reply.failure().message();
  EXPECT_EQ(created.reply.failure().message().find("closed the connection"), std::string::npos);
  RecordingSink::take(sink.deaths);
}

TEST_F(NodeCoreTest, WithoutRoomTheHeadIsToldToLookElsewhere) {
  make(1, 1);
  start_worker();
  want(1, demand(1));
  take_grant();
  create(actor(1, {{"CPU", 1}}, {{"CPU", 1}}));
  EXPECT_EQ(sink.rest(), "");
  pass(150 * kMs);
  RecordingSink::take(sink.revokes);  // A waiting actor makes owners return leases, as demands do.
  pass(400 * kMs);
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.no_resources());
  create(actor(2, {{"GPU", 1}}, {{"GPU", 1}}));
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.no_resources());
}

TEST_F(NodeCoreTest, AskedTwiceItIsCreatedOnce) {
  make(1);
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  create(request);
  start_worker();
  RecordingSink::take(sink.starts);
  constructed(request);
  RecordingSink::take(sink.created);
  create(request);  // As a restarted head would.
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.ok());
  request.set_epoch(0);
  create(request);
  EXPECT_FALSE(RecordingSink::take(sink.created).reply.ok());
}

// A head that was restarted would start an actor elsewhere of which no node tells it.
TEST_F(NodeCoreTest, ARegistrationNamesTheActorsThatAreStillBeingStarted) {
  make(1, 1);
  start_workers(1);
  const auto starting = actor(1, {{"CPU", 1}}, {{"CPU", 1}});
  const auto waiting = actor(2, {{"CPU", 1}}, {{"CPU", 1}});
  create(starting);
  create(waiting);
  const WorkerId worker = RecordingSink::take(sink.starts);
  auto listed = [&] {
    proto::RegisterNodeRequest request;
    fill_holdings(*core, &request);
    std::map<std::string, proto::ActorInfo> actors;
    for (const auto& info : request.live_actors()) actors[info.spec().actor_id()] = info;
    return actors;
  };
  auto actors = listed();
  ASSERT_EQ(actors.size(), 2u);
  for (const auto* request : {&starting, &waiting}) {
    const proto::ActorInfo& info = actors[request->spec().actor_id()];
    EXPECT_EQ(info.state(), proto::ACTOR_PENDING);
    EXPECT_EQ(info.epoch(), 1);
    EXPECT_FALSE(info.has_address());
  }
  constructed(starting);
  RecordingSink::take(sink.created);
  EXPECT_EQ(listed()[starting.spec().actor_id()].state(), proto::ACTOR_ALIVE);
  EXPECT_EQ(listed()[starting.spec().actor_id()].address().worker_id(), worker.binary());
  core->worker_disconnected(worker, now());
  RecordingSink::take(sink.kills);
  EXPECT_EQ(listed().size(), 1u) << "the process of the other one ends";
  sink = RecordingSink();
}

TEST_F(NodeCoreTest, AStartThatFailedBeforeItHadAProcessIsNotTriedAgain) {
  make(1);
  const auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  proto::KillWorkerRequest kill;
  kill.set_actor_id(request.spec().actor_id());
  kill.set_why(proto::ExitInfo::KILLED_BY_USER);
  core->kill(kill, now());
  RecordingSink::take(sink.created);
  create(request);  // As a head would whose connection broke before the answer.
  EXPECT_EQ(RecordingSink::take(sink.created).reply.failure().kind(),
            proto::ExitInfo::KILLED_BY_USER);
  EXPECT_TRUE(core->view().actors().empty());
  start_worker();
}

TEST_F(NodeCoreTest, ALaterIncarnationReplacesTheEarlier) {
  make(1);
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  WorkerId old_worker = start_worker();
  RecordingSink::take(sink.starts);
  constructed(request);
  RecordingSink::take(sink.created);
  request.set_epoch(2);
  create(request);
  EXPECT_EQ(RecordingSink::take(sink.kills), old_worker);
  start_worker();
  RecordingSink::take(sink.starts);
  // A request to end the old process comes late.
  proto::KillWorkerRequest kill;
  kill.set_actor_id(request.spec().actor_id());
  kill.set_worker_id(old_worker.binary());
  core->kill(kill, now());
  EXPECT_EQ(RecordingSink::take(sink.kills), old_worker);
  EXPECT_TRUE(sink.created.empty());
  reap(old_worker, SIGKILL);
  RecordingSink::take(sink.deaths);  // Only the worker's death is reported: the actor lives on.
  constructed(request);
  EXPECT_EQ(RecordingSink::take(sink.created).epoch, 2);
}

TEST_F(NodeCoreTest, AStartingActorKeepsItsGracePeriod) {
  make(1);
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  WorkerId id = start_worker();
  RecordingSink::take(sink.starts);
  proto::KillWorkerRequest kill;
  kill.set_actor_id(request.spec().actor_id());
  kill.set_why(proto::ExitInfo::OUT_OF_SCOPE);
  core->kill(kill, now());
  EXPECT_EQ(RecordingSink::take(sink.exits), id);
  // The head, which learns that the actor had started, asks for its end once more.
  kill.set_worker_id(id.binary());
  kill.set_why(proto::ExitInfo::UNKNOWN);
  core->kill(kill, now());
  EXPECT_TRUE(sink.kills.empty());
  EXPECT_TRUE(sink.exits.empty());
  reap(id, 0);
  EXPECT_EQ(RecordingSink::take(sink.created).reply.failure().kind(),
            proto::ExitInfo::OUT_OF_SCOPE);
  RecordingSink::take(sink.deaths);
}

class LeavingActor : public NodeCoreTest {
 protected:
  void SetUp() override {
    make(1);
    auto request = actor(1, {{"CPU", 1}}, {{"CPU", 1}});
    create(request);
    id = start_worker();
    RecordingSink::take(sink.starts);
    constructed(request);
    RecordingSink::take(sink.created);
    kill.set_actor_id(request.spec().actor_id());
    kill.set_why(proto::ExitInfo::OUT_OF_SCOPE);
    kill.set_graceful(true);
    core->kill(kill, now());
    EXPECT_EQ(RecordingSink::take(sink.exits), id);
  }
  void expect_killed() {
    pass(29'000'000);
    EXPECT_TRUE(sink.kills.empty());
    pass(2'000'000);
    EXPECT_EQ(RecordingSink::take(sink.kills), id);
    reap(id, SIGKILL);
    auto died = RecordingSink::take(sink.actor_deaths);
    EXPECT_EQ(died.death().kind(), proto::ExitInfo::OUT_OF_SCOPE);
    EXPECT_NE(died.death().message().find("worker_exit_timeout_ms"), std::string::npos);
    RecordingSink::take(sink.deaths);
  }
  WorkerId id;
  proto::KillWorkerRequest kill;  // that was asked for
};

TEST_F(LeavingActor, WhoseProcessHangsIsKilled) { expect_killed(); }

TEST_F(LeavingActor, MayFinishItsCallsButNotRunExitHandlersForEver) {
  core->worker_leaves(id, NodeCore::Leaving::kHasHeard, now());
  pass(3'600'000'000);
  EXPECT_TRUE(sink.kills.empty());
  core->worker_leaves(id, NodeCore::Leaving::kWorkIsDone, now());
  expect_killed();
}

TEST_F(LeavingActor, MayBeKilledMeanwhileAndTheKillSaysWhoDidIt) {
  kill.set_graceful(false);
  kill.set_why(proto::ExitInfo::KILLED_BY_USER);
  kill.set_message("killed by ray.kill");
  kill.set_for_good(true);
  core->kill(kill, now());
  EXPECT_EQ(RecordingSink::take(sink.exits), id);  // Gives it time to send its task events.
  pass(100'000);
  EXPECT_TRUE(sink.kills.empty());
  pass(200'000);
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  reap(id, SIGKILL);
  auto died = RecordingSink::take(sink.actor_deaths);
  EXPECT_EQ(died.death().signal(), SIGKILL);
  EXPECT_EQ(died.death().kind(), proto::ExitInfo::KILLED_BY_USER);
  EXPECT_TRUE(died.death().for_good());
  RecordingSink::take(sink.deaths);
}

TEST_F(NodeCoreTest, AWaitingActorIsKilledWithoutAProcess) {
  make(1);
  auto request = actor(1, {{"CPU", 1}}, {});
  create(request);
  proto::KillWorkerRequest kill;
  kill.set_actor_id(request.spec().actor_id());
  kill.set_why(proto::ExitInfo::KILLED_BY_USER);
  core->kill(kill, now());
  core->check_invariants();
  EXPECT_EQ(RecordingSink::take(sink.created).reply.failure().kind(),
            proto::ExitInfo::KILLED_BY_USER);
  EXPECT_EQ(free_cpus(), 1);
  start_worker();
}

TEST_F(NodeCoreTest, DetachedActorsOutliveTheirJob) {
  make(2);
  auto plain = actor(1, {}, {}), detached = actor(2, {}, {}), child = actor(3, {}, {});
  detached.mutable_spec()->set_detached(true);
  child.mutable_spec()->mutable_job_config()->set_outlives_job(true);
  for (const auto& request : {plain, detached}) {
    create(request);
    start_worker();
    constructed(request);
    RecordingSink::take(sink.created);
  }
  WorkerId first = RecordingSink::take(sink.starts);
  WorkerId second = RecordingSink::take(sink.starts);
  core->job_finished(job(), now());
  EXPECT_EQ(RecordingSink::take(sink.exits), first);
  reap(first, 0);
  EXPECT_EQ(RecordingSink::take(sink.actor_deaths).death().kind(), proto::ExitInfo::JOB_FINISHED);
  RecordingSink::take(sink.deaths);
  // An actor that the detached actor creates after the end of the job.
  create(child);
  start_worker();
  constructed(child);
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.ok());
  WorkerId third = RecordingSink::take(sink.starts);
  core->job_over(job(), now());
  std::set<WorkerId> ended = {RecordingSink::take(sink.exits), RecordingSink::take(sink.exits)};
  EXPECT_EQ(ended, (std::set<WorkerId>{second, third}));
  for (const WorkerId& id : ended) {
    reap(id, 0);
    RecordingSink::take(sink.actor_deaths);
    RecordingSink::take(sink.deaths);
  }
}

// Whatever happens in whatever order, the core's invariants hold and all resources are free in the
// end.
TEST_F(NodeCoreTest, InvariantsHoldUnderRandomEvents) {
  make(4, 2);
  Rng rng(4711);
  std::vector<RecordingSink::Grant> leases;
  std::vector<proto::CreateActorRequest> actors;
  for (int step = 0; step < 3000; ++step) {
    switch (rng.below(12)) {
      case 0:
      case 1:
        want(1 + rng.below(3), demand(static_cast<int>(rng.below(6)),
                                      {{"CPU", rng.chance(0.3) ? 2.0 : 1.0}}, rng.below(3)));
        break;
      case 2:
      case 3:
        if (!sink.spawns.empty()) start_worker();
        break;
      case 4:
      case 5:
        if (!leases.empty()) {
          size_t i = rng.below(leases.size());
          give_back(leases[i], rng.chance(0.1));
          leases.erase(leases.begin() + static_cast<long>(i));
        }
        break;
      case 6:
        if (!leases.empty())
          core->set_blocked(worker_of(leases[rng.below(leases.size())]), rng.chance(0.5), now());
        break;
      case 7:
        if (rng.chance(0.2)) core->owner_closed(1 + rng.below(3), now());
        break;
      case 8:
        actors.push_back(actor(static_cast<uint32_t>(step), {{"CPU", 1}},
                               {{"CPU", rng.chance(0.3) ? 1.0 : 0.0}}));
        create(actors.back());
        break;
      case 9:
        if (!actors.empty()) constructed(actors[rng.below(actors.size())]);
        break;
      case 10:
        if (core->view().pool().all().empty()) break;
        {
          auto it = core->view().pool().all().begin();
          std::advance(it, static_cast<long>(rng.below(core->view().pool().all().size())));
          WorkerId id = it->first;
          std::erase_if(sink.spawns, [&](const auto& spawn) { return spawn.id == id; });
          if (it->second->connected && rng.chance(0.5)) core->worker_disconnected(id, now());
          if (rng.chance(0.7)) reap(id, SIGKILL);
        }
        break;
      default: pass(static_cast<int64_t>(rng.below(300)) * kMs);
    }
    core->check_invariants();
    while (!sink.grants.empty()) leases.push_back(take_grant());
    std::erase_if(sink.spawns, [&](const auto& spawn) { return !core->view().worker(spawn.id); });
  }
  std::deque<RecordingSink::Spawn> none;
  sink = RecordingSink();
}

TEST_F(NodeCoreTest, ResourcesOfStartingActorsAreCountedByTheHead) {
  make(2, 1);
  start_workers(1);
  auto request = actor(1, {{"CPU", 1}}, {});
  auto lasting = actor(2, {{"CPU", 1}}, {{"CPU", 1}});
  auto reported = [&] {
    proto::ResourceReport report;
    core->view().fill_report(&report);
    return ResourceSet::from_proto(report.available()).get("CPU");
  };
  create(request);  // Is starting.
  create(lasting);  // Waits for a process.
  EXPECT_EQ(free_cpus(), 0);
  EXPECT_EQ(reported(), 2);
  constructed(request);
  EXPECT_EQ(reported(), 2);
  start_worker();
  constructed(lasting);
  EXPECT_EQ(reported(), 1);
  sink.starts.clear(), sink.created.clear(), sink.spawns.clear();
}

}  // namespace
}  // namespace rt::node
