// Drivers and workers register at a node-manager, and it admits or refuses them.
#include <gtest/gtest.h>

#include "service_fixture.h"

namespace rt::node {
namespace {

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
  start_node();
  auto early = connect("driver");
  proto::RegisterWorkerRequest request;
  request.set_is_driver(true);
  bool answered = false, ok = false;
  rpc::call(*early->connection, &proto::NodeManagerService::Stub::RegisterWorker, request,
            60'000'000, [&](Result<proto::RegisterWorkerReply> reply) {
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
              60'000'000, [&](auto reply) { ++(reply ? accepted : refused); });
  EXPECT_TRUE(driver.run_until([&] { return accepted + refused == 2; }));
  EXPECT_EQ(accepted, 1);
  client->connection->close(make_error(Code::kUnavailable, "bye"));
  EXPECT_TRUE(driver.run_until([&] { return head.jobs == 1 && head.finished.size() == 1; }));
}

// A driver that names a job does not begin it: it may be another driver's, which goes on.
TEST_F(NodeManagerTest, ARefusedDriverDoesNotEndTheJobThatItHasNamed) {
  start();
  auto first = connect("driver");
  const std::string job = join_driver(*first).job_id();
  auto second = connect("driver");
  proto::RegisterWorkerRequest request;
  request.set_is_driver(true);
  request.mutable_job_config()->set_job_id(job);
  const auto refused = call(*second, &proto::NodeManagerService::Stub::RegisterWorker, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kAlreadyExists);
  second->connection->close(make_error(Code::kUnavailable, "bye"));
  // The head answers in order: it would have heard of an end before it begins the next job.
  auto third = connect("driver");
  EXPECT_NE(join_driver(*third).job_id(), job);
  EXPECT_TRUE(head.finished.empty());
  first->connection->close(make_error(Code::kUnavailable, "bye"));
  EXPECT_TRUE(driver.run_until([&] { return head.finished == std::vector{job}; }));
}

// The head has begun this one for the driver, and nobody else would finish it.
TEST_F(NodeManagerTest, TheJobThatWasBegunForARefusedDriverEnds) {
  start();
  auto first = connect("driver");
  proto::RegisterWorkerRequest request;
  request.set_is_driver(true);
  const std::string job = job_id_from_int(1).binary();
  request.mutable_job_config()->set_job_id(job);
  ASSERT_TRUE(call(*first, &proto::NodeManagerService::Stub::RegisterWorker, request));
  auto second = connect("driver");
  request.clear_job_config();  // The fake head gives it the same number.
  EXPECT_FALSE(call(*second, &proto::NodeManagerService::Stub::RegisterWorker, request));
  EXPECT_TRUE(driver.run_until([&] { return head.finished == std::vector{job}; }));
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

}  // namespace
}  // namespace rt::node
