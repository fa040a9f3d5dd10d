// A whole node-manager over loopback with a fake head. The test plays the driver and the workers.
#include <gtest/gtest.h>

#include "common/rpc/server.h"
#include "daemons/node_manager/service/node_manager.h"
#include "process_fixture.h"

namespace rt::node {
namespace {

using Controller = google::protobuf::RpcController;
using Closure = google::protobuf::Closure;

class FakeHead final : public proto::HeadService {
 public:
  void RegisterNode(Controller* c, const proto::RegisterNodeRequest* request,
                    proto::RegisterNodeReply* reply, Closure* done) override {
    registrations.push_back(*request);
    node = rpc::server_call(c).connection();
    reply->set_cluster_id(std::string(28, 'c'));
    *reply->add_nodes() = request->node();
    done->Run();
  }
  void ReportResources(Controller*, const proto::ResourceReport* m, proto::Empty*,
                       Closure* done) override {
    report = *m;
    ++reports;
    done->Run();
  }
  void UnregisterNode(Controller*, const proto::UnregisterNodeRequest* m, proto::Empty*,
                      Closure* done) override {
    farewells.push_back(*m);
    done->Run();
  }
  void AddJob(Controller*, const proto::AddJobRequest*, proto::AddJobReply* reply,
              Closure* done) override {
    reply->set_job_id(job_id_from_int(++jobs).binary());
    reply->set_ray_namespace("ns");
    done->Run();
  }
  void FinishJob(Controller*, const proto::FinishJobRequest* m, proto::Empty*,
                 Closure* done) override {
    finished.push_back(m->job_id());
    done->Run();
  }
  void ReportDeadWorkers(Controller*, const proto::DeadWorkers* m, proto::Empty*,
                         Closure* done) override {
    for (const auto& id : m->worker_ids()) dead.insert(id);
    done->Run();
  }
  void ReportActorDied(Controller*, const proto::ActorDied* m, proto::Empty*,
                       Closure* done) override {
    actor_deaths.push_back(*m);
    done->Run();
  }
  void Subscribe(Controller*, const proto::SubscribeRequest*, proto::Empty*,
                 Closure* done) override {
    done->Run();
  }
  void PublishLogs(Controller*, const proto::HeadEvent* m, proto::Empty*, Closure* done) override {
    logs.MergeFrom(*m);
    done->Run();
  }
  void ReportSubmittedJob(Controller*, const proto::SubmittedJob* m, proto::Empty*,
                          Closure* done) override {
    submitted.push_back(*m);
    done->Run();
  }

  std::vector<proto::RegisterNodeRequest> registrations;
  std::shared_ptr<rpc::Connection> node;
  proto::ResourceReport report;
  int reports = 0;
  uint32_t jobs = 0;
  std::vector<proto::UnregisterNodeRequest> farewells;
  std::vector<std::string> finished;
  std::set<std::string> dead;
  std::vector<proto::ActorDied> actor_deaths;
  proto::HeadEvent logs;
  std::vector<proto::SubmittedJob> submitted;
};

// The connection of a driver or worker to its node-manager; records the messages it receives.
class Client final : public proto::NodeClientService {
 public:
  void OnLeaseGrant(Controller*, const proto::LeaseGrant* m, proto::Empty*,
                    Closure* done) override {
    grants.push_back(*m);
    done->Run();
  }
  void OnLeaseRevoke(Controller*, const proto::LeaseRevoke*, proto::Empty*,
                     Closure* done) override {
    done->Run();
  }
  void OnLeaseRedirect(Controller*, const proto::LeaseRedirect* m, proto::Empty*,
                       Closure* done) override {
    redirects.push_back(*m);
    done->Run();
  }
  void OnLeaseNotice(Controller*, const proto::LeaseNotice* m, proto::Empty*,
                     Closure* done) override {
    notices.push_back(*m);
    done->Run();
  }
  void OnHeadEvent(Controller*, const proto::HeadEvent* m, proto::Empty*, Closure* done) override {
    events.MergeFrom(*m);
    done->Run();
  }
  void StartActor(Controller*, const proto::CreateActorRequest*, proto::CreateActorReply* reply,
                  Closure* done) override {
    ++actors;
    reply->set_ok(true);
    done->Run();
  }
  void Exit(Controller*, const proto::KillWorkerRequest*, proto::Empty*, Closure* done) override {
    done->Run();
  }

  std::shared_ptr<rpc::Connection> connection;
  std::vector<proto::LeaseGrant> grants;
  std::vector<proto::LeaseRedirect> redirects;
  std::vector<proto::LeaseNotice> notices;
  proto::HeadEvent events;
  int actors = 0;
};

// The main function of forked workers: it writes its process id to a file that is named after the
// worker's id and sleeps until it is killed. The test registers in its name.
constexpr const char* kWorkerMain =
    "import os, time\n"
    "def main(args):\n"
    "    path = os.path.join(args['session_dir'], 'w-' + args['worker_id'])\n"
    "    open(path + '.tmp', 'w').write(str(os.getpid()))\n"
    "    os.rename(path + '.tmp', path)\n"
    "    print(':task_name:f', flush=True)\n"
    "    print('hello from a worker', flush=True)\n"
    "    time.sleep(1000)\n";

class NodeManagerTest : public testing::Test {
 protected:
  NodeManagerTest() {
    write_fake_package(dir, kWorkerMain);
    settings.prestart_workers = 1;
    settings.resource_report_min_interval_ms = 1;
  }
  ~NodeManagerTest() override {
    if (!node) return;
    node->stop({proto::EXPECTED_TERMINATION, "the test ends", Code::kOk, 500'000});
    EXPECT_TRUE(driver.run_until([&] { return stopped; }));
  }
  void serve_head() {
    rpc::ServerOptions server;
    server.identity.role = "head";
    server.identity.cluster_id = std::string(28, 'c');
    server.identity.token = "secret";
    server.on_connection = [this](const std::shared_ptr<rpc::Connection>& c) {
      c->add_service(&head);
    };
    head_server = std::make_unique<rpc::Server>(driver.loop(), server);
    ASSERT_TRUE(head_server->listen(net::Address::tcp("127.0.0.1", head_port)));
    head_port = head_server->port();
  }
  void start_node(const std::string& token = "secret") {
    NodeManagerOptions options;
    Rng rng(5);
    options.node_id = NodeId::random(rng);
    options.head = net::Address::tcp("127.0.0.1", head_port);
    options.token = token;
    options.session_dir = dir.root();
    options.socket_path = dir.path("sockets/raylet");
    options.tcp = net::Address::tcp("127.0.0.1", 0);
    options.total = ResourceSet::from_map({{"CPU", 1}}).value();
    options.programs.python_path = dir.path("py");
    options.settings = settings;
    node = std::make_unique<NodeManager>(driver.loop(), options, events());
    ASSERT_TRUE(node->start());
  }
  NodeManager::Events events() {
    return {
        .on_ready = [this](const std::string&) { ready = true; },
        .on_status = [](const std::string&) {},
        .on_stopping = [this](const std::string& why) { stop_message = why; },
        .on_stopped =
            [this](const Status& how) {
              stopped = true;
              exit_code = how ? 0 : 1;
            },
    };
  }
  void start() {
    serve_head();
    start_node();
    ASSERT_TRUE(driver.run_until([&] { return ready; }));
  }
  std::unique_ptr<Client> connect(const std::string& role) {
    auto client = std::make_unique<Client>();
    rpc::Identity me;
    me.role = role;
    bool done = false;
    rpc::connect(driver.loop(), {net::Address::unix_socket(dir.path("sockets/raylet")), "self", ""},
                 me, 5'000'000, [&](Result<std::shared_ptr<rpc::Connection>> result) {
                   done = true;
                   if (result) client->connection = *result;
                 });
    EXPECT_TRUE(driver.run_until([&] { return done; }));
    EXPECT_NE(client->connection, nullptr);
    client->connection->add_service(client.get());
    return client;
  }
  template <class Method, class Request>
  auto call(Client& client, Method method, const Request& request) {
    return call(*client.connection, method, request);
  }
  template <class Method, class Request>
  auto call(rpc::Connection& connection, Method method, const Request& request) {
    using Reply = typename rpc::StubMethod<Method>::ReplyType;
    Result<Reply> answer = make_error(Code::kInternal, "none");
    bool done = false;
    rpc::call(connection, method, request, 10'000'000, [&](Result<Reply> reply) {
      answer = std::move(reply);
      done = true;
    });
    EXPECT_TRUE(driver.run_until([&] { return done; }));
    return answer;
  }
  proto::RegisterWorkerReply join_driver(Client& client) {
    proto::RegisterWorkerRequest request;
    request.set_is_driver(true);
    request.set_pid(::getpid());
    request.set_socket_path("/driver");
    auto reply = call(client, &proto::NodeManagerService::Stub::RegisterWorker, request);
    EXPECT_TRUE(reply);
    return reply ? *reply : proto::RegisterWorkerReply();
  }
  // Waits for a forked process that is not registered yet, and registers it.
  std::unique_ptr<Client> join_worker() {
    std::string found;
    EXPECT_TRUE(driver.run_until([&] {
      for (const auto& entry : std::filesystem::directory_iterator(dir.root())) {
        std::string name = entry.path().filename();
        if (name.starts_with("w-") && name.size() == 2 + 56 && !joined.contains(name.substr(2)))
          found = name.substr(2);
      }
      return !found.empty();
    }));
    joined.insert(found);
    auto client = connect("worker");
    proto::RegisterWorkerRequest request;
    request.set_worker_id(from_hex(found));
    std::ifstream(dir.path("w-" + found)) >> worker_pid;
    request.set_pid(worker_pid);
    request.set_socket_path(dir.path("sockets/w-" + found.substr(0, 16)));
    last_worker = request.worker_id();
    EXPECT_TRUE(call(*client, &proto::NodeManagerService::Stub::RegisterWorker, request));
    return client;
  }
  void want(Client& client, int n, uint32_t job = 1) {
    proto::LeaseDemand demand;
    demand.set_class_id(9);
    demand.set_want(n);
    ResourceSet::from_map({{"CPU", 1}}).value().to_proto(demand.mutable_resources());
    demand.mutable_job()->set_job_id(job_id_from_int(job).binary());
    rpc::notify(*client.connection, &proto::NodeManagerService::Stub::SetLeaseDemand, demand);
  }

  ScratchDir dir;
  AsioDriver driver;
  Settings settings;
  FakeHead head;
  std::unique_ptr<rpc::Server> head_server;
  std::unique_ptr<NodeManager> node;
  int head_port = 0;
  bool ready = false, stopped = false;
  int exit_code = -1, worker_pid = 0;
  std::string stop_message, last_worker;
  std::set<std::string> joined;
};

TEST_F(NodeManagerTest, RegistersAndTellsDriversAllTheyNeed) {
  start();
  ASSERT_EQ(head.registrations.size(), 1u);
  EXPECT_EQ(head.registrations[0].node().port(), node->port());
  auto driver_client = connect("driver");
  auto reply = join_driver(*driver_client);
  EXPECT_EQ(reply.job_id(), job_id_from_int(1).binary());
  EXPECT_EQ(reply.ray_namespace(), "ns");
  EXPECT_EQ(reply.token(), "secret");
  EXPECT_EQ(reply.cluster_id(), std::string(28, 'c'));
  EXPECT_EQ(reply.head_address(), "127.0.0.1:" + std::to_string(head_port));
  EXPECT_EQ(reply.nodes_size(), 1);
  EXPECT_EQ(reply.session_dir(), dir.root());
  EXPECT_EQ(reply.port(), node->port());
  // The end of the driver's connection ends its job.
  driver_client->connection->close(make_error(Code::kUnavailable, "bye"));
  EXPECT_TRUE(driver.run_until([&] { return head.finished.size() == 1; }));
}

TEST_F(NodeManagerTest, ADriverThatComesBeforeTheHeadWaits) {
  serve_head();
  head_server.reset();
  start_node();
  auto early = connect("driver");
  proto::RegisterWorkerRequest request;
  request.set_is_driver(true);
  bool answered = false, ok = false;
  rpc::call(*early->connection, &proto::NodeManagerService::Stub::RegisterWorker, request,
            10'000'000, [&](Result<proto::RegisterWorkerReply> reply) {
              answered = true;
              ok = reply.has_value();
            });
  serve_head();
  EXPECT_TRUE(driver.run_until([&] { return answered; }));
  EXPECT_TRUE(ok);
}

TEST_F(NodeManagerTest, AConnectionThatRegistersTwiceAtOnceIsOneDriver) {
  start();
  auto client = connect("driver");
  proto::RegisterWorkerRequest request;
  request.set_is_driver(true);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 2; ++i)
    rpc::call(*client->connection, &proto::NodeManagerService::Stub::RegisterWorker, request,
              10'000'000, [&](auto reply) { ++(reply ? accepted : refused); });
  EXPECT_TRUE(driver.run_until([&] { return accepted + refused == 2; }));
  EXPECT_EQ(accepted, 1);
  client->connection->close(make_error(Code::kUnavailable, "bye"));
  EXPECT_TRUE(driver.run_until([&] { return head.jobs == 1 && head.finished.size() == 1; }));
}

TEST_F(NodeManagerTest, LeasesAWorkerAndReportsHowItDied) {
  start();
  auto owner = connect("driver");
  join_driver(*owner);
  want(*owner, 1);
  auto worker = join_worker();
  ASSERT_TRUE(driver.run_until([&] { return owner->grants.size() == 1; }));
  EXPECT_EQ(owner->grants[0].worker().worker_id(), last_worker);
  EXPECT_EQ(owner->grants[0].pid(), worker_pid);
  EXPECT_TRUE(driver.run_until([&] { return head.report.available().units().empty(); }));
  EXPECT_TRUE(driver.run_until([&] { return head.logs.logs_size() > 0; }));
  EXPECT_EQ(head.logs.logs(0).name(), "f");
  EXPECT_EQ(head.logs.logs(0).lines(0), "hello from a worker");
  EXPECT_EQ(head.logs.logs(0).pid(), worker_pid);

  ASSERT_EQ(::kill(worker_pid, SIGSEGV), 0);
  proto::WorkerExitRequest ask;
  ask.set_worker_id(last_worker);
  auto exit = call(*owner, &proto::NodeManagerService::Stub::GetWorkerExit, ask);
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->exited());
  EXPECT_EQ(exit->info().signal(), SIGSEGV);
  EXPECT_TRUE(driver.run_until(
      [&] { return head.dead.contains(last_worker) && owner->events.dead_workers_size() == 1; }));
  worker->connection->close(make_error(Code::kUnavailable, "dead"));
}

TEST_F(NodeManagerTest, SaysThatAWorkerLives) {
  start();
  auto owner = connect("driver");
  join_driver(*owner);
  want(*owner, 1);
  auto worker = join_worker();
  ASSERT_TRUE(driver.run_until([&] { return owner->grants.size() == 1; }));
  proto::WorkerExitRequest ask;
  ask.set_worker_id(last_worker);
  auto exit = call(*owner, &proto::NodeManagerService::Stub::GetWorkerExit, ask);
  ASSERT_TRUE(exit);
  EXPECT_FALSE(exit->exited());
  EXPECT_NE(exit->info().message().find("goes on"), std::string::npos) << exit->info().message();
}

TEST_F(NodeManagerTest, ADriversEndEndsItsWorkers) {
  start();
  auto owner = connect("driver");
  join_driver(*owner);
  want(*owner, 1);
  auto worker = join_worker();
  ASSERT_TRUE(driver.run_until([&] { return owner->grants.size() == 1; }));
  uint64_t started = process_start_time(worker_pid);
  owner->connection->close(make_error(Code::kUnavailable, "bye"));
  EXPECT_TRUE(driver.run_until([&] { return process_start_time(worker_pid) != started; }));
}

TEST_F(NodeManagerTest, PlacesAnActorForTheHeadAndReportsItsDeath) {
  start();
  auto worker = join_worker();
  proto::CreateActorRequest request;
  request.mutable_spec()->set_actor_id(make_actor_id(job_id_from_int(1), 1, 1).binary());
  request.mutable_spec()->set_job_id(job_id_from_int(1).binary());
  request.set_epoch(1);
  auto reply = call(*head.node, &proto::NodeManagerService::Stub::CreateActor, request);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->ok());
  EXPECT_EQ(reply->address().worker_id(), last_worker);
  EXPECT_EQ(worker->actors, 1);
  // The node-manager kills a worker whose connection broke.
  worker->connection->close(make_error(Code::kUnavailable, "gone"));
  ASSERT_TRUE(driver.run_until([&] { return head.actor_deaths.size() == 1; }));
  EXPECT_EQ(head.actor_deaths[0].death().signal(), SIGKILL);
}

TEST_F(NodeManagerTest, ComesBackToAHeadThatRestarted) {
  start();
  auto owner = connect("driver");
  join_driver(*owner);
  head.node.reset();
  head_server.reset();
  serve_head();
  ASSERT_TRUE(driver.run_until([&] { return head.registrations.size() == 2; }));
  EXPECT_EQ(head.registrations[1].live_jobs_size(), 1);
  EXPECT_FALSE(stopped);
}

TEST_F(NodeManagerTest, ReservesBundlesForTheHeadAndTellsTheNextHeadOfThem) {
  start();
  proto::PrepareBundlesRequest prepare;
  prepare.set_group_id(std::string(GroupId::kSize, 'g'));
  prepare.set_job_id(job_id_from_int(1).binary());
  prepare.set_epoch(3);
  auto* bundle = prepare.add_bundles();
  ResourceSet::from_map({{"CPU", 1}}).value().to_proto(bundle->mutable_resources());
  auto prepared = call(*head.node, &proto::NodeManagerService::Stub::PrepareBundles, prepare);
  ASSERT_TRUE(prepared);
  EXPECT_TRUE(prepared->ok()) << prepared->why_not();
  EXPECT_TRUE(driver.run_until([&] {
    return ResourceSet::from_proto(head.report.reserved()).get("CPU") == 1 &&
           head.report.available().units().empty();
  }));
  head.node.reset();
  head_server.reset();
  serve_head();
  ASSERT_TRUE(driver.run_until([&] { return head.registrations.size() == 2; }));
  const proto::RegisterNodeRequest& again = head.registrations[1];
  ASSERT_EQ(again.bundles_size(), 1);
  EXPECT_EQ(again.bundles(0).group_id(), prepare.group_id());
  EXPECT_EQ(again.bundles(0).epoch(), 3);
  EXPECT_EQ(ResourceSet::from_proto(again.node().reserved()).get("CPU"), 1);
  proto::ReturnBundlesRequest give_back;
  give_back.set_group_id(prepare.group_id());
  give_back.set_epoch(3);
  EXPECT_TRUE(call(*head.node, &proto::NodeManagerService::Stub::ReturnBundles, give_back));
  EXPECT_TRUE(driver.run_until([&] { return head.report.reserved().units().empty(); }));
}

// The head that asked is gone, and the next one would not know of a bundle that comes free later.
TEST_F(NodeManagerTest, BundlesThatWaitWhenTheHeadIsLostAreDropped) {
  start();
  auto owner = connect("driver");
  join_driver(*owner);
  want(*owner, 1);
  auto worker = join_worker();
  ASSERT_TRUE(driver.run_until([&] { return owner->grants.size() == 1; }));
  proto::PrepareBundlesRequest prepare;
  prepare.set_group_id(std::string(GroupId::kSize, 'g'));
  prepare.set_job_id(job_id_from_int(1).binary());
  prepare.set_epoch(3);
  auto* bundle = prepare.add_bundles();
  ResourceSet::from_map({{"CPU", 1}}).value().to_proto(bundle->mutable_resources());
  bool failed = false;
  rpc::call(*head.node, &proto::NodeManagerService::Stub::PrepareBundles, prepare, 10'000'000,
            [&](Result<proto::PrepareBundlesReply> reply) { failed = !reply; });
  // The answer to a later call shows that this one has been read and waits.
  EXPECT_TRUE(call(*head.node, &proto::NodeManagerService::Stub::ListProcesses, proto::Empty()));
  EXPECT_FALSE(failed);
  head.node.reset();
  head_server.reset();
  EXPECT_TRUE(driver.run_until([&] { return failed; }));
  serve_head();
  ASSERT_TRUE(driver.run_until([&] { return head.registrations.size() == 2; }));
  proto::LeaseReturn give_back;
  give_back.set_lease_id(owner->grants[0].lease_id());
  rpc::notify(*owner->connection, &proto::NodeManagerService::Stub::ReturnLease, give_back);
  EXPECT_TRUE(driver.run_until([&] { return node->core().view().leases().leases().empty(); }));
  EXPECT_EQ(node->core().view().bundles().size(), 0u);
}

TEST_F(NodeManagerTest, DriversHearThatTheHeadIsLostAndThatItIsBack) {
  start();
  auto me = connect("driver");
  join_driver(*me);
  head.node.reset();
  head_server.reset();
  ASSERT_TRUE(driver.run_until([&] { return me->notices.size() == 1; }));
  EXPECT_NE(
      me->notices[0].message().find("head at 127.0.0.1:" + std::to_string(head_port) + " is lost"),
      std::string::npos)
      << me->notices[0].message();
  EXPECT_EQ(me->notices[0].code(), 0);
  serve_head();
  ASSERT_TRUE(driver.run_until([&] { return me->notices.size() == 2; }));
  EXPECT_NE(me->notices[1].message().find("is back"), std::string::npos);
}

TEST_F(NodeManagerTest, DriversAreNotifiedBeforeANodeWithoutAHeadEnds) {
  settings.head_reconnect_timeout_ms = 200;
  start();
  auto me = connect("driver");
  join_driver(*me);
  head.node.reset();
  head_server.reset();
  ASSERT_TRUE(driver.run_until([&] { return stopped && me->notices.size() == 2; }));
  EXPECT_EQ(me->notices[1].code(), static_cast<int>(Code::kLocalNodeDied));
  EXPECT_NE(me->notices[1].message().find("could not be reached"), std::string::npos);
}

TEST_F(NodeManagerTest, AWrongTokenEndsItAtOnce) {
  serve_head();
  start_node("guess");
  ASSERT_TRUE(driver.run_until([&] { return stopped; }, 3'000'000));
  EXPECT_EQ(exit_code, 1);
  EXPECT_NE(stop_message.find("token"), std::string::npos);
}

TEST_F(NodeManagerTest, AnUnreachableHeadEndsItWithTheAddress) {
  settings.connect_timeout_ms = 300;
  serve_head();
  head_server.reset();
  start_node();
  ASSERT_TRUE(driver.run_until([&] { return stopped; }));
  EXPECT_EQ(exit_code, 1);
  EXPECT_NE(stop_message.find(std::to_string(head_port)), std::string::npos);
}

TEST_F(NodeManagerTest, StrangersCannotRegisterAsWorkers) {
  start();
  auto owner = connect("driver");
  join_driver(*owner);
  want(*owner, 1);
  auto worker = join_worker();
  auto stranger = connect("worker");
  proto::RegisterWorkerRequest request;
  for (const auto& id : {std::string(28, 'x'), std::string("short"), WorkerId::nil().binary()}) {
    request.set_worker_id(id);
    EXPECT_FALSE(call(*stranger, &proto::NodeManagerService::Stub::RegisterWorker, request));
  }
  // Nor are they told what registered processes are told: an answer comes behind all of it.
  ASSERT_EQ(::kill(worker_pid, SIGKILL), 0);
  ASSERT_TRUE(driver.run_until([&] { return owner->events.dead_workers_size() == 1; }));
  EXPECT_FALSE(call(*stranger, &proto::NodeManagerService::Stub::RegisterWorker, request));
  EXPECT_EQ(stranger->events.dead_workers_size(), 0);
}

TEST_F(NodeManagerTest, SubmittedJobsAreReported) {
  start();
  proto::StartJobProcessRequest request;
  request.mutable_job()->set_submission_id("raysubmit_x");
  request.mutable_job()->set_entrypoint("echo done");
  ASSERT_TRUE(call(*head.node, &proto::NodeManagerService::Stub::StartJobProcess, request));
  ASSERT_TRUE(driver.run_until([&] { return head.submitted.size() == 2; }));
  EXPECT_EQ(head.submitted[1].status(), "SUCCEEDED");
  proto::ReadJobLogRequest read;
  read.set_submission_id("raysubmit_x");
  auto log = call(*head.node, &proto::NodeManagerService::Stub::ReadJobLog, read);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->data(), "Running entrypoint for job raysubmit_x: echo done\ndone\n");
}

TEST_F(NodeManagerTest, StopLeavesTheClusterAndNoProcess) {
  start();
  auto worker = join_worker();
  uint64_t started = process_start_time(worker_pid);
  node->stop({proto::EXPECTED_TERMINATION, "asked to", Code::kOk, 500'000});
  ASSERT_TRUE(driver.run_until([&] { return stopped && head.farewells.size() == 1; }));
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(head.farewells[0].reason(), 1);
  EXPECT_NE(process_start_time(worker_pid), started);
}

// The node's TCP port leads to a worker's own socket if the preamble names the worker.
TEST_F(NodeManagerTest, HandsConnectionsForWorkersOn) {
  start();
  auto worker = join_worker();
  rpc::ServerOptions options;
  options.identity.role = "worker";
  options.identity.id = last_worker;
  options.identity.token = "secret";
  bool arrived = false;
  options.on_connection = [&](const std::shared_ptr<rpc::Connection>&) { arrived = true; };
  rpc::Server server(driver.loop(), options);
  ASSERT_TRUE(server.listen(
      net::Address::unix_socket(dir.path("sockets/w-" + to_hex(last_worker).substr(0, 16)))));
  rpc::Identity me;
  me.role = "driver";
  me.token = "secret";
  std::string peer;
  std::shared_ptr<rpc::Connection> kept;
  rpc::connect(driver.loop(),
               {net::Address::tcp("127.0.0.1", node->port()), "worker", to_hex(last_worker)}, me,
               5'000'000, [&](Result<std::shared_ptr<rpc::Connection>> result) {
                 kept = result ? *result : nullptr;
                 peer = result ? (*result)->peer().role : result.error().message;
               });
  EXPECT_TRUE(driver.run_until([&] { return !peer.empty(); }));
  EXPECT_EQ(peer, "worker");
  EXPECT_TRUE(arrived);
}

}  // namespace
}  // namespace rt::node
