// The head's RPC interface over loopback: a HeadServer in a thread of its own, clients and a fake
// node-manager in the test's thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>
#include <thread>

#include "common/base/rng.h"
#include "common/net/asio_loop.h"
#include "daemons/head/service/head_server.h"
#include "observability/events/task_digest.h"
#include "tests/unit/common/free_port.h"
#include "tests/unit/head/fake_node.h"

namespace rt::head {
namespace {

using Head = proto::HeadService::Stub;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "head_service_XXXXXX").string();
    dir = ::mkdtemp(pattern.data());
    start();
  }
  ~ServiceTest() override {
    stop();
    std::filesystem::remove_all(dir);
  }

  void start() {
    int fd = *net::listen_on(net::Address::tcp("127.0.0.1", 0));
    port = *net::bound_port(fd);
    std::promise<void> listening;
    thread = std::thread([this, fd, &listening] {
      net::AsioLoop own;
      loop = &own;
      HeadServer::Options options;
      options.core.session_name = "session_test";
      options.core.head_address = "127.0.0.1:" + std::to_string(port);
      options.core.settings.job_log_wait_max_ms = 60'000;
      options.core.settings.task_events_queue_bytes = 100'000;
      options.core.settings.storage_retry_ms = 50;
      options.core.seed = 7;
      options.state_dir = dir;
      options.token = "secret";
      options.on_stop = [&own] { own.stop(); };
      auto server = HeadServer::open(own, std::move(options));
      ASSERT_TRUE(server) << server.error().message;
      (*server)->start(fd, [&](const Status& started) {
        EXPECT_TRUE(started) << started.error().message;
        listening.set_value();
      });
      own.run();
    });
    listening.get_future().wait();
  }
  void stop() {
    if (!thread.joinable()) return;
    loop->stop();
    thread.join();
  }
  std::unique_ptr<rpc::SyncClient> client(const std::string& token = "secret") {
    rpc::Identity me;
    me.role = "client";
    me.token = token;
    auto connected =
        rpc::SyncClient::connect({net::Address::tcp("127.0.0.1", port)}, me, 60'000'000);
    EXPECT_TRUE(connected) << connected.error().message;
    return connected ? std::move(*connected) : nullptr;
  }

  std::string dir;
  int port = 0;
  net::AsioLoop* loop = nullptr;
  std::thread thread;
};

TEST_F(ServiceTest, TheTokenIsDemanded) {
  rpc::Identity me;
  me.role = "client";
  me.token = "wrong";
  auto refused = rpc::SyncClient::connect({net::Address::tcp("127.0.0.1", port)}, me, 60'000'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnauthenticated);
}

TEST_F(ServiceTest, KeyValue) {
  auto c = client();
  proto::KvPutRequest put;
  put.set_ns("n");
  put.set_key("k");
  put.set_value("v");
  auto added = c->call(&Head::KvPut, put);
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_TRUE(added->added());
  proto::KvGetRequest get;
  get.set_ns("n");
  get.set_key("k");
  EXPECT_EQ(c->call(&Head::KvGet, get)->value(), "v");
  proto::KvListRequest list;
  list.set_ns("n");
  EXPECT_EQ(c->call(&Head::KvList, list)->keys_size(), 1);
  EXPECT_TRUE(c->call(&Head::KvDelete, get)->added());
  EXPECT_FALSE(c->call(&Head::KvGet, get)->found());
  put.set_key("");
  EXPECT_EQ(c->call(&Head::KvPut, put).error().code, Code::kInvalid);
}

TEST_F(ServiceTest, AnActorFromRegistrationToDeath) {
  FakeNode node(port, "secret");
  ASSERT_TRUE(node.join());
  JobId job = JobId::from_binary(node.add_job().job_id());
  FakeNode driver(port, "secret", std::string(28, 'd'));  // Never joins; receives OnHeadEvent.
  ActorId id = make_actor_id(job, 1, 1);
  proto::SubscribeRequest follow;
  follow.add_actor_ids(id.binary());
  ASSERT_TRUE(driver.client->call(&Head::Subscribe, follow));
  proto::RegisterActorRequest request;
  request.mutable_spec()->set_actor_id(id.binary());
  request.mutable_spec()->set_job_id(job.binary());
  request.mutable_spec()->set_name("a");
  request.mutable_spec()->set_ray_namespace("ns");
  auto registered = driver.client->call(&Head::RegisterActor, request);
  ASSERT_TRUE(registered) << registered.error().message;
  ASSERT_TRUE(node.run_until([&] { return node.created.size() == 1; }));
  ASSERT_TRUE(driver.run_until([&] { return driver.events.actors_size() == 1; }));
  EXPECT_EQ(driver.events.actors(0).state(), proto::ACTOR_ALIVE);
  EXPECT_EQ(driver.events.actors(0).address().worker_id(), std::string(28, 'w'));
  proto::KillActorRequest kill;
  kill.set_actor_id(id.binary());
  kill.set_no_restart(true);
  ASSERT_TRUE(driver.client->call(&Head::KillActor, kill));
  ASSERT_TRUE(node.run_until([&] { return node.killed.size() == 1; }));
  ASSERT_TRUE(driver.run_until([&] { return driver.events.actors_size() == 2; }));
  EXPECT_EQ(driver.events.actors(1).state(), proto::ACTOR_DEAD);
  proto::GetActorRequest get;
  get.set_name("a");
  get.set_ray_namespace("ns");
  EXPECT_FALSE(driver.client->call(&Head::GetActor, get)->found());
}

TEST_F(ServiceTest, APlacementGroupFromRegistrationToRemoval) {
  FakeNode node(port, "secret");
  ASSERT_TRUE(node.join());
  JobId job = JobId::from_binary(node.add_job().job_id());
  FakeNode driver(port, "secret", std::string(28, 'd'));  // Never joins; receives OnHeadEvent.
  Rng rng(3);
  proto::RegisterGroupRequest request;
  request.mutable_spec()->set_group_id(make_group_id(job, rng).binary());
  request.mutable_spec()->set_job_id(job.binary());
  request.mutable_spec()->set_name("g");
  (*request.mutable_spec()->add_bundles()->mutable_resources()->mutable_units())["CPU"] = 10'000;
  ASSERT_TRUE(driver.client->call(&Head::RegisterGroup, request));
  ASSERT_TRUE(node.run_until([&] { return node.prepared.size() == 1; }));
  auto created = [&] {
    return driver.events.groups_size() > 0 &&
           driver.events.groups().rbegin()->state() == proto::GROUP_CREATED;
  };
  ASSERT_TRUE(driver.run_until(created));
  EXPECT_EQ(driver.events.groups().rbegin()->bundle_nodes(0), node.id());
  proto::GetGroupRequest by_name;
  by_name.set_name("g");
  auto got = driver.client->call(&Head::GetGroup, by_name);
  ASSERT_TRUE(got && got->found());
  EXPECT_EQ(got->group().bundle_epochs(0), node.prepared[0].epoch());
  EXPECT_EQ(driver.client->call(&Head::ListGroups, proto::Empty())->groups_size(), 1);
  FakeNode late(port, "secret", std::string(28, 'l'));
  proto::SubscribeRequest subscribe;
  subscribe.add_group_ids(request.spec().group_id());
  ASSERT_TRUE(late.client->call(&Head::Subscribe, subscribe));
  ASSERT_TRUE(late.run_until([&] { return late.events.groups_size() == 1; }));
  proto::GroupRequest removal;
  removal.set_group_id(request.spec().group_id());
  ASSERT_TRUE(driver.client->call(&Head::RemoveGroup, removal));
  ASSERT_TRUE(node.run_until([&] { return node.returned.size() == 1; }));
  EXPECT_EQ(node.returned[0].why().kind(), proto::ExitInfo::GROUP_REMOVED);
  ASSERT_TRUE(late.run_until([&] { return late.events.groups_size() == 2; }));
  EXPECT_EQ(late.events.groups(1).state(), proto::GROUP_REMOVED);
}

TEST_F(ServiceTest, ANodeThatCannotBeReachedIsRefused) {
  FakeNode node(port, "secret");
  auto request = node.registration();
  const int unused = test::free_port();
  std::string nowhere = "127.0.0.1:" + std::to_string(unused);
  request.mutable_node()->set_port(unused);
  auto refused = node.client->call(&Head::RegisterNode, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr(nowhere), HasSubstr("--node-ip-address")));
  EXPECT_EQ(node.client->call(&Head::GetNodes, proto::GetNodesRequest())->nodes_size(), 0);
  EXPECT_TRUE(node.join());
}

TEST_F(ServiceTest, ALostNodeIsSeenAsSuch) {
  auto node = std::make_unique<FakeNode>(port, "secret");
  ASSERT_TRUE(node->join());
  auto job = node->add_job();
  FakeNode other(port, "secret", std::string(28, 'o'));
  auto joined = other.join();
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->nodes_size(), 2);
  node.reset();
  ASSERT_TRUE(other.run_until([&] { return other.events.finished_jobs_size() == 1; }));
  EXPECT_EQ(other.events.finished_jobs(0), job.job_id());
  proto::GetNodesRequest alive;
  alive.set_alive_only(true);
  EXPECT_EQ(other.client->call(&Head::GetNodes, alive)->nodes_size(), 1);
  auto status = other.client->call(&Head::GetClusterStatus, proto::Empty());
  EXPECT_EQ(status->recent_failures_size(), 1);
  EXPECT_EQ(status->session_name(), "session_test");
}

TEST_F(ServiceTest, ASubmittedJobAndItsOutput) {
  FakeNode node(port, "secret");
  ASSERT_TRUE(node.join());
  auto c = client();
  proto::SubmitJobRequest submit;
  submit.set_submission_id("job-1");
  submit.set_entrypoint("echo hello");
  ASSERT_TRUE(c->call(&Head::SubmitJob, submit));
  EXPECT_EQ(c->call(&Head::SubmitJob, submit).error().code, Code::kAlreadyExists);
  ASSERT_TRUE(node.run_until([&] { return node.started.size() == 1; }));
  EXPECT_EQ(node.started[0].env().at("RAY_ADDRESS"), "127.0.0.1:" + std::to_string(port));

  auto read = [&](int64_t offset, int64_t wait_ms) {
    proto::JobLogsRequest request;
    request.set_submission_id("job-1");
    request.set_offset(offset);
    request.set_wait_ms(wait_ms);
    auto answer = std::make_shared<std::optional<Result<proto::JobLogsReply>>>();
    rpc::call(*c->connection(), &Head::GetJobLogs, request, 100'000'000,
              [answer](Result<proto::JobLogsReply> reply) { *answer = std::move(reply); });
    return answer;
  };
  auto both = [&](auto done) {
    return node.run_until([&] {
      bool never = false;
      c->run_until(never, 1'000);
      return done();
    });
  };
  auto waiting = read(0, 60'000);  // Waits, because there is no output yet.
  ASSERT_TRUE(both([&] { return node.log_reads >= 2; }));
  EXPECT_FALSE(waiting->has_value());
  node.log = "hello\n";
  ASSERT_TRUE(both([&] { return waiting->has_value(); }));
  ASSERT_TRUE(**waiting) << (**waiting).error().message;
  EXPECT_EQ((**waiting)->data(), "hello\n");
  EXPECT_EQ((**waiting)->next_offset(), 6);
  EXPECT_EQ((**waiting)->size(), 6);

  auto at_end = read(6, 60'000);
  proto::SubmittedJob ended = node.started[0].job();
  ended.set_status("SUCCEEDED");
  ASSERT_TRUE(node.client->call(&Head::ReportSubmittedJob, ended));
  ASSERT_TRUE(both([&] { return at_end->has_value(); }));
  EXPECT_EQ((**at_end)->data(), "");
  EXPECT_EQ((**at_end)->job().status(), "SUCCEEDED");

  auto timed_out = read(6, 0);
  ASSERT_TRUE(both([&] { return timed_out->has_value(); }));
  proto::SubmittedJobRequest unknown;
  unknown.set_submission_id("nope");
  EXPECT_EQ(c->call(&Head::GetSubmittedJob, unknown).error().code, Code::kNotFound);
  EXPECT_EQ(c->call(&Head::ListSubmittedJobs, proto::Empty())->jobs(0).status(), "SUCCEEDED");
  proto::GetSnapshotRequest jobs;
  jobs.set_jobs(true);
  auto snapshot = c->call(&Head::GetSnapshot, jobs);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->submitted_jobs().jobs(0).status(), "SUCCEEDED");
  EXPECT_TRUE(snapshot->has_drivers());
  EXPECT_FALSE(snapshot->has_status() || snapshot->has_nodes() || snapshot->has_actors() ||
               snapshot->has_groups());
  proto::GetSnapshotRequest others;
  others.set_status(true);
  others.mutable_nodes();
  others.mutable_actors();
  others.set_groups(true);
  snapshot = c->call(&Head::GetSnapshot, others);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->nodes().nodes_size(), 1);
  EXPECT_EQ(snapshot->status().nodes_size(), 1);
  EXPECT_TRUE(snapshot->has_actors() && snapshot->has_groups());
  EXPECT_FALSE(snapshot->has_drivers() || snapshot->has_submitted_jobs());
  proto::SubmittedJobRequest gone;
  gone.set_submission_id("job-1");
  EXPECT_TRUE(c->call(&Head::DeleteSubmittedJob, gone));
  ASSERT_TRUE(node.run_until([&] { return !node.removed_logs.empty(); }));
  EXPECT_EQ(node.removed_logs, std::vector<std::string>{"job-1"});
}

TEST_F(ServiceTest, TaskEventsAreKept) {
  auto c = client();
  proto::TaskEventBatch batch;
  batch.set_count(3);
  batch.set_packed("packed");
  rpc::notify(*c->connection(), &Head::AddTaskEvents, batch);
  auto reply = c->call(&Head::GetTaskEvents, proto::GetTaskEventsRequest());
  ASSERT_TRUE(reply) << reply.error().message;
  ASSERT_EQ(reply->batches_size(), 1);
  EXPECT_EQ(reply->batches(0).packed(), "packed");
}

TEST_F(ServiceTest, EndsOfTasksAreCountedWhenTheHistoryTakesThem) {
  FakeNode node(port, "secret");
  auto counted = [&] {
    return *node.client->call(&proto::HeadMetricsService::Stub::GetHeadStats, proto::Empty());
  };
  TaskEventBatchData data;
  data.strings = {"", "f", "ValueError"};
  for (uint32_t error : {0u, 0u, 2u}) {
    TaskEvent& event = data.events.emplace_back();
    event.name = event.function = 1;
    event.error = error;
  }
  proto::TaskEventBatch batch;
  batch.set_count(3);
  batch.set_dropped(1);
  batch.set_packed(pack_task_events(data));
  batch.set_digest(pack_task_digest(data));
  ASSERT_FALSE(batch.digest().empty());
  batch.set_row(1);
  ASSERT_TRUE(node.client->call(&Head::AddTaskEvents, batch));
  // A node that missed the answer sends the batch again.
  ASSERT_TRUE(node.client->call(&Head::AddTaskEvents, batch));
  EXPECT_EQ(counted().tasks_finished(), 2);
  EXPECT_EQ(counted().tasks_failed(), 1);
  EXPECT_EQ(counted().task_events_reported(), 3);
  EXPECT_EQ(counted().task_events_dropped(), 1);

  batch.set_row(2);
  batch.clear_digest();
  ASSERT_TRUE(node.client->call(&Head::AddTaskEvents, batch));
  EXPECT_EQ(counted().tasks_finished(), 4);
  EXPECT_EQ(counted().tasks_failed(), 2);

  batch.set_row(3);
  // These are more bytes than the history's queue holds.
  batch.set_packed(std::string(200'000, 'e'));
  EXPECT_EQ(node.client->call(&Head::AddTaskEvents, batch).error().code, Code::kResourceExhausted);
  EXPECT_EQ(counted().tasks_finished(), 4);
  EXPECT_EQ(counted().task_events_reported(), 9);
  EXPECT_EQ(counted().task_events_dropped(), 1 + 1 + 1 + 3);
}

// While an object of this class lives, no file of the process can grow, as on a failing disk.
struct NoFileGrowth {
  NoFileGrowth() {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit none{4096, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoFileGrowth() { ::setrlimit(RLIMIT_FSIZE, &before); }
  rlimit before{};
};

TEST_F(ServiceTest, FailingStorageIsToldUntilItWorksAgain) {
  auto c = client();
  auto told = [&] { return c->call(&Head::GetHealth, proto::Empty())->storage_failure(); };
  auto works_again = [&] {
    for (int i = 0; i < 1000 && !told().empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return told().empty();
  };
  auto put = [&] {
    proto::KvPutRequest request;
    request.set_ns("tests");
    request.set_key("key");
    request.set_value(std::string(10'000, 'v'));
    return c->call(&Head::KvPut, request);
  };
  EXPECT_EQ(told(), "");
  {
    NoFileGrowth no_growth;
    EXPECT_FALSE(put());
    EXPECT_THAT(told(), AllOf(HasSubstr("storage is failing: the head's state cannot be written"),
                              HasSubstr(dir)));
    EXPECT_EQ(c->call(&Head::GetClusterStatus, proto::Empty())->storage_failure(), told());
    auto stats = c->call(&proto::HeadMetricsService::Stub::GetHeadStats, proto::Empty());
    EXPECT_TRUE(stats->storage_failing());
    EXPECT_GE(stats->storage_write_failures(), 1);
  }
  EXPECT_TRUE(works_again()) << told();  // The head notices that without a new write.
  EXPECT_FALSE(
      c->call(&proto::HeadMetricsService::Stub::GetHeadStats, proto::Empty())->storage_failing());
  EXPECT_TRUE(put());

  FakeNode node(port, "secret");
  proto::TaskEventBatch batch;
  batch.set_count(1);
  batch.set_packed(std::string(10'000, 'e'));
  batch.set_row(1);
  {
    NoFileGrowth no_growth;
    EXPECT_FALSE(node.client->call(&Head::AddTaskEvents, batch));
    EXPECT_THAT(told(), HasSubstr("storage is failing: the task history"));
  }
  EXPECT_TRUE(works_again()) << told();
}

TEST_F(ServiceTest, StopIsAnsweredFirst) {
  auto c = client();
  EXPECT_TRUE(c->call(&Head::Stop, proto::Empty()));
  thread.join();
}

}  // namespace
}  // namespace rt::head
