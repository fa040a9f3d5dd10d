// The list of a node's processes for the state API.
#include "core_fixture.h"

namespace rt::node {
namespace {

TEST_F(NodeCoreTest, ProcessesAreListedWhileTheyLiveAndAfterwards) {
  make(1, 1);
  time_us = 5'000'000;
  WorkerId id = start_worker();
  WorkerId driver = driver_worker_id(job(3));
  ASSERT_TRUE(core->add_driver(driver, job(3), 77, "/s/d", now()));
  proto::ProcessesReply reply;
  core->view().workers().fill_processes(&reply);
  ASSERT_EQ(reply.processes_size(), 2);
  std::map<std::string, proto::ProcessInfo> by_id;
  for (const auto& process : reply.processes()) by_id[process.worker_id()] = process;
  EXPECT_TRUE(by_id[id.binary()].alive());
  EXPECT_EQ(by_id[id.binary()].start_time_ms(), 1000);  // It was started together with the node.
  EXPECT_EQ(by_id[id.binary()].job_id(), "");
  EXPECT_TRUE(by_id[driver.binary()].is_driver());
  EXPECT_EQ(by_id[driver.binary()].job_id(), job(3).binary());
  EXPECT_EQ(by_id[driver.binary()].pid(), 77);

  time_us = 9'000'000;
  core->worker_disconnected(driver, now());
  reap(id, 0, 3);
  reply.Clear();
  core->view().workers().fill_processes(&reply);
  by_id.clear();
  for (const auto& process : reply.processes()) by_id[process.worker_id()] = process;
  ASSERT_TRUE(by_id.contains(id.binary()) && by_id.contains(driver.binary()));
  EXPECT_FALSE(by_id[id.binary()].alive());
  EXPECT_EQ(by_id[id.binary()].end_time_ms(), 9000);
  EXPECT_EQ(by_id[id.binary()].exit().exit_code(), 3);
  EXPECT_TRUE(by_id[driver.binary()].is_driver());
  sink.deaths.clear();
  sink.spawns.clear();
}

}  // namespace
}  // namespace rt::node
