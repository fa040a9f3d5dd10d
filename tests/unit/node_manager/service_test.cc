// How a whole node-manager serves its head, drivers and workers.
#include <gtest/gtest.h>

#include "service_fixture.h"

namespace rt::node {
namespace {

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
  settings.connect_timeout_ms = 600'000;  // It would end after this time all the same.
  serve_head();
  start_node("guess");
  ASSERT_TRUE(driver.run_until([&] { return stopped; }));
  EXPECT_EQ(exit_code, 1);
  EXPECT_NE(stop_message.find("token"), std::string::npos);
}

TEST_F(NodeManagerTest, AnUnreachableHeadEndsItWithTheAddress) {
  settings.connect_timeout_ms = 300;
  start_node();
  ASSERT_TRUE(driver.run_until([&] { return stopped; }));
  EXPECT_EQ(exit_code, 1);
  EXPECT_NE(stop_message.find(std::to_string(head_port)), std::string::npos);
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
               60'000'000, [&](Result<std::shared_ptr<rpc::Connection>> result) {
                 kept = result ? *result : nullptr;
                 peer = result ? (*result)->peer().role : result.error().message;
               });
  EXPECT_TRUE(driver.run_until([&] { return !peer.empty(); }));
  EXPECT_EQ(peer, "worker");
  EXPECT_TRUE(arrived);
}

}  // namespace
}  // namespace rt::node
