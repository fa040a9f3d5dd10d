// A whole node-manager over loopback with a fake head. The test plays the driver and the workers.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/rpc/server.h"
#include "daemons/node_manager/service/node_manager.h"
#include "process_fixture.h"
#include "tests/unit/common/free_port.h"

namespace rt::node {

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
    settings.connect_timeout_ms = 60'000;
  }
  ~NodeManagerTest() override { stop_node(); }
  void stop_node() {
    if (!node) return;
    node->stop({proto::EXPECTED_TERMINATION, "the test ends", Code::kOk, 500'000});
    EXPECT_TRUE(driver.run_until([&] { return stopped; }));
    node.reset();
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
    options.store_socket = store_socket;
    options.total = ResourceSet::from_map({{"CPU", 1}}).value();
    options.programs.python_path = dir.path("py");
    options.settings = settings;
    node = std::make_unique<NodeManager>(driver.loop(), options, events());
    ASSERT_TRUE(node->start());
  }
  NodeManager::Events events() {
    return {
        .on_ready =
            [this](const std::string& text) {
              ready = true;
              status = text;
            },
        .on_status = [this](const std::string& text) { status = text; },
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
                 me, 60'000'000, [&](Result<std::shared_ptr<rpc::Connection>> result) {
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
    rpc::call(connection, method, request, 60'000'000, [&](Result<Reply> reply) {
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
  // The port of each head of the test, one after the other.
  const int head_port = test::free_port();
  bool ready = false, stopped = false;
  int exit_code = -1, worker_pid = 0;
  std::string status, stop_message, last_worker;
  // The object store that the node has; empty: none.
  std::string store_socket;
  std::set<std::string> joined;
};

}  // namespace rt::node
