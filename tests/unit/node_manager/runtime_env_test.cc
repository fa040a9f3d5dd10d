// Workers that are started for a runtime environment and serve no other.
#include "daemons/node_manager/core/runtime_env.h"
#include "core_fixture.h"

namespace rt::node {
namespace {

constexpr char kRed[] = R"({"env_vars":{"A":"red"}})";

class RuntimeEnvTest : public NodeCoreTest {
 protected:
  proto::LeaseDemand demand_with(const std::string& env, int n, uint64_t class_id = 1) {
    proto::LeaseDemand d = demand(n, {{"CPU", 1}}, class_id);
    d.set_runtime_env(env);
    return d;
  }
  // One line "ENV made|failed after MS, WORKERS, ERROR" for each known environment.
  std::vector<std::string> environments() const {
    proto::RuntimeEnvsReply reply;
    core->view().workers().fill_runtime_envs(&reply);
    std::vector<std::string> lines;
    for (const auto& env : reply.runtime_envs()) {
      lines.push_back(env.runtime_env() + (env.success() ? " made after " : " failed after ") +
                      std::to_string(env.setup_us() / 1000) + ", " + std::to_string(env.workers()) +
                      ", " + env.error());
    }
    return lines;
  }
  WorkerId starting() {
    auto spawn = RecordingSink::take(sink.spawns);
    EXPECT_EQ(spawn.kind.runtime_env, kRed);
    core->worker_spawned(spawn.id, ++pids, now());
    return spawn.id;
  }
};

TEST_F(RuntimeEnvTest, ADemandGetsOnlyWorkersStartedForIt) {
  make(2, 1);
  WorkerId plain = start_worker();
  want(1, demand_with(kRed, 1));
  WorkerId red = starting();
  EXPECT_EQ(sink.rest(), "");  // The idle worker without an environment is not granted.
  EXPECT_TRUE(core->worker_registered(red, pids, "/s/red", now()));
  auto grant = take_grant();
  EXPECT_EQ(worker_of(grant), red);
  want(1, demand_with("", 1, 2));
  EXPECT_EQ(worker_of(take_grant()), plain);
  give_back(grant);
  want(1, demand_with(kRed, 1));
  EXPECT_EQ(worker_of(take_grant()), red);  // The idle worker is used again.
}

TEST_F(RuntimeEnvTest, AnIdleWorkerOfAnotherEnvironmentMakesRoom) {
  settings.max_workers = 1;
  make(1, 1);
  WorkerId plain = start_worker();
  want(1, demand_with(kRed, 1));
  EXPECT_EQ(RecordingSink::take(sink.exits), plain);
  WorkerId red = starting();
  EXPECT_TRUE(core->worker_registered(red, pids, "/s/red", now()));
  take_grant();
}

TEST_F(RuntimeEnvTest, AFailedSetupFailsItsClassAndNoOther) {
  make(2);
  want(1, demand_with(kRed, 1));
  want(1, demand_with("", 1, 2));
  RecordingSink::Spawn first = RecordingSink::take(sink.spawns),
                       second = RecordingSink::take(sink.spawns);
  if (first.kind.runtime_env.empty()) std::swap(first, second);
  core->worker_setup_failed(first.id, "no such package", now());
  auto notice = RecordingSink::take(sink.notices);
  EXPECT_EQ(notice.message.class_id(), 1u);
  EXPECT_TRUE(notice.message.fatal());
  EXPECT_EQ(notice.message.code(), static_cast<int>(Code::kRuntimeEnvSetup));
  EXPECT_NE(notice.message.message().find("no such package"), std::string::npos);
  EXPECT_EQ(RecordingSink::take(sink.kills), first.id);
  core->worker_setup_failed(first.id, "said twice", now());
  reap(first.id, 0, 26);
  RecordingSink::take(sink.deaths);
  EXPECT_TRUE(core->worker_registered(second.id, ++pids, "/s/plain", now()));
  EXPECT_EQ(take_grant().message.class_id(), 2u);
  // A failure does not count against later demands: the next one starts a process at once.
  want(1, demand_with(kRed, 1));
  WorkerId red = starting();
  EXPECT_TRUE(core->worker_registered(red, pids, "/s/red", now()));
  take_grant();
}

TEST_F(RuntimeEnvTest, AFailedSetupIsTheActorsDeath) {
  make(1);
  auto request = actor(1, {{"CPU", 1}}, {});
  request.mutable_spec()->mutable_creation()->set_runtime_env(kRed);
  create(request);
  WorkerId red = starting();
  core->worker_setup_failed(red, "no such package", now());
  auto created = RecordingSink::take(sink.created);
  EXPECT_FALSE(created.reply.ok());
  EXPECT_EQ(created.reply.failure().kind(), proto::ExitInfo::INIT_FAILED);
  EXPECT_EQ(created.reply.failure().exit_code(), static_cast<int>(Code::kRuntimeEnvSetup));
  EXPECT_EQ(RecordingSink::take(sink.kills), red);
  EXPECT_EQ(free_cpus(), 1);
  reap(red, 0, 26);
  RecordingSink::take(sink.deaths);
}

TEST_F(RuntimeEnvTest, PlainWorkersCannotSayThatTheirSetupFailed) {
  make(1, 1);
  WorkerId id = RecordingSink::take(sink.spawns).id;
  core->worker_setup_failed(id, "a lie", now());
  core->worker_spawned(id, ++pids, now());
  EXPECT_TRUE(core->worker_registered(id, pids, "/s", now()));
  core->worker_setup_failed(id, "another", now());
  EXPECT_EQ(core->view().pool().count(WorkerState::kIdle), 1);
}

TEST_F(RuntimeEnvTest, MakingAnEnvironmentMayTakeItsTimeoutOnTop) {
  make(1);
  want(1, demand_with(R"({"config":{"setup_timeout_seconds":100}})", 1));
  WorkerId id = RecordingSink::take(sink.spawns).id;
  core->worker_spawned(id, 5, now());
  pass(settings.worker_register_timeout_ms * kMs + 99'000 * kMs);
  EXPECT_EQ(sink.rest(), "");
  pass(2'000 * kMs);
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  reap(id, SIGKILL);
  RecordingSink::take(sink.deaths);
  want(1, demand(0));
  sink.spawns.clear();
}

TEST_F(RuntimeEnvTest, EnvironmentsAreListedWithTheirWorkers) {
  const std::string red = kRed;
  make(2, 1);
  start_worker();
  want(1, demand_with(kRed, 1));
  WorkerId first = starting();
  EXPECT_TRUE(environments().empty());  // It is not known yet whether it can be made.
  pass(30 * kMs);
  EXPECT_TRUE(core->worker_registered(first, pids, "/s/red", now()));
  EXPECT_EQ(environments(), std::vector<std::string>{red + " made after 30, 1, "});
  auto grant = take_grant();
  reap(first, SIGKILL);
  sink.deaths.clear();
  // An environment without workers is remembered.
  EXPECT_EQ(environments(), std::vector<std::string>{red + " made after 30, 0, "});
  want(1, demand_with(kRed, 1));
  WorkerId second = starting();
  pass(20 * kMs);
  core->worker_setup_failed(second, "no such package", now());
  // The last outcome replaces the earlier one.
  EXPECT_EQ(environments(), std::vector<std::string>{red + " failed after 20, 0, no such package"});
  sink.notices.clear();
  sink.kills.clear();
  reap(second, 0, 26);
  sink.deaths.clear();
}

TEST_F(RuntimeEnvTest, AProcessThatCannotBeStartedFailsItsEnvironment) {
  make(1);
  want(1, demand_with(kRed, 1));
  core->worker_start_failed(RecordingSink::take(sink.spawns).id, "no such interpreter", now());
  EXPECT_EQ(environments(), std::vector<std::string>{std::string(kRed) +
                                                     " failed after 0, 0, no such interpreter"});
  sink.notices.clear();
  sink.spawns.clear();
}

TEST(RuntimeEnvTable, ForgetsTheOldestThatAreNotInUse) {
  RuntimeEnvTable table;
  for (size_t i = 0; i < RuntimeEnvTable::kMaxOutcomes + 2; ++i)
    table.record("env " + std::to_string(i), "", 0, {"env 0"});
  table.record("env 2", "again", 0, {"env 0"});
  table.record("another", "", 0, {"env 0"});
  proto::RuntimeEnvsReply reply;
  table.fill({}, &reply);
  std::set<std::string> kept;
  for (const auto& env : reply.runtime_envs()) kept.insert(env.runtime_env());
  EXPECT_EQ(kept.size(), RuntimeEnvTable::kMaxOutcomes);
  EXPECT_TRUE(kept.contains("env 0") && kept.contains("another"));
  EXPECT_FALSE(kept.contains("env 1") || kept.contains("env 3") || kept.contains("env 4"));
  EXPECT_TRUE(kept.contains("env 2") && kept.contains("env 5"));
}

TEST_F(RuntimeEnvTest, HugeEnvironmentsAreRefused) {
  make(1);
  want(1, demand_with(std::string(kMaxRuntimeEnvBytes + 1, ' '), 1));
  EXPECT_EQ(RecordingSink::take(sink.notices).message.code(),
            static_cast<int>(Code::kRuntimeEnvSetup));
}

TEST(SetupTimeout, IsReadFromTheEnvironment) {
  EXPECT_EQ(setup_timeout_us("{}"), 600'000'000);
  EXPECT_EQ(setup_timeout_us("no JSON"), 600'000'000);
  EXPECT_EQ(setup_timeout_us(R"({"config":{"setup_timeout_seconds":5}})"), 5'000'000);
  EXPECT_EQ(setup_timeout_us(R"({"config":{"setup_timeout_seconds":-1}})"), -1);
}

}  // namespace
}  // namespace rt::node
