// ClusterNews: who on a node hears of nodes, jobs, dead workers and the head, and in which order.
#include "daemons/node_manager/core/cluster_news.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/rng.h"

namespace rt::node {
namespace {

class RecordingNewsSink final : public NewsSink {
 public:
  void declared_dead(const std::string& why) override { add("dead: " + why); }
  void nodes_changed(const Membership::NodeList& nodes) override {
    for (const proto::Node& node : nodes)
      add(fmt::format("core: {} {}", node.ip(), node.alive() ? "lives" : "is gone"));
  }
  void head_lost() override { add("core: head lost"); }
  void job_finished(JobId job) override { add("core: finished " + job.hex()); }
  void job_over(JobId job) override { add("core: over " + job.hex()); }
  void tell_processes(const proto::HeadEvent& news) override {
    add(fmt::format("processes: {} nodes, {} dead workers", news.nodes_size(),
                    news.dead_workers_size()));
  }
  void tell_drivers(const std::string& line) override { add("drivers: " + line); }
  void owners_gone(const proto::OwnersGone& gone) override {
    for (const std::string& id : gone.worker_ids())
      add("store: worker " + WorkerId::from_binary(id).hex());
    for (const std::string& id : gone.node_ids())
      add("store: node " + NodeId::from_binary(id).hex());
    for (const std::string& id : gone.job_ids()) add("store: job " + JobId::from_binary(id).hex());
  }

  std::vector<std::string> take() { return std::exchange(done_, {}); }

 private:
  void add(std::string what) { done_.push_back(std::move(what)); }
  std::vector<std::string> done_;
};

using Done = std::vector<std::string>;

class ClusterNewsTest : public testing::Test {
 protected:
  static NodeId id_of(uint64_t seed) {
    Rng rng(seed);
    return NodeId::random(rng);
  }
  static proto::Node node(uint64_t seed, bool alive = true) {
    proto::Node node;
    node.set_node_id(id_of(seed).binary());
    node.set_ip(fmt::format("10.0.0.{}", seed));
    node.set_alive(alive);
    if (!alive) node.set_death_message("it did not answer");
    return node;
  }
  static proto::RegisterNodeReply reply_with(std::initializer_list<proto::Node> nodes) {
    proto::RegisterNodeReply reply;
    for (const proto::Node& one : nodes) *reply.add_nodes() = one;
    return reply;
  }

  const JobId job = job_id_from_int(7);
  const std::string driver = driver_worker_id(job).hex();
  Settings settings;
  RecordingNewsSink sink;
  ClusterNews news{settings, "10.0.0.9:6379", id_of(1), sink};
};

TEST_F(ClusterNewsTest, ProcessesHearOfNodesOnceSomeAreRegistered) {
  news.registered(reply_with({node(1), node(2)}), true);
  EXPECT_EQ(sink.take(), (Done{"core: 10.0.0.1 lives", "core: 10.0.0.2 lives"}));
  proto::HeadEvent event;
  *event.add_nodes() = node(3);
  news.event(event);
  EXPECT_EQ(sink.take(), (Done{"processes: 1 nodes, 0 dead workers", "core: 10.0.0.3 lives"}));
  news.registered(reply_with({node(1), node(2)}), false);
  EXPECT_EQ(sink.take(), (Done{"processes: 1 nodes, 0 dead workers", "core: 10.0.0.1 lives",
                               "core: 10.0.0.2 lives", "core: 10.0.0.3 is gone",
                               "store: node " + id_of(3).hex()}));
}

TEST_F(ClusterNewsTest, ANodeThatWasDeclaredDeadDoesNothingElse) {
  proto::HeadEvent event;
  *event.add_nodes() = node(2);
  *event.add_nodes() = node(1, false);
  event.add_finished_jobs(job.binary());
  event.add_over_jobs(job.binary());
  event.add_dead_workers(driver_worker_id(job).binary());
  news.event(event);
  EXPECT_EQ(sink.take(), (Done{"dead: it did not answer"}));

  proto::RegisterNodeReply reply = reply_with({node(1, false)});
  reply.add_dead_jobs(job.binary());
  news.lost("reset");
  sink.take();
  news.registered(reply, false);
  EXPECT_EQ(sink.take(), (Done{"dead: it did not answer"}));
}

TEST_F(ClusterNewsTest, TheObjectsOfADriverGoWhenItHasLeft) {
  const Done done{"core: finished " + job.hex(), "store: worker " + driver};
  proto::HeadEvent event;
  event.add_finished_jobs(job.binary());
  news.event(event);
  EXPECT_EQ(sink.take(), done);
  news.job_finished(job);
  EXPECT_EQ(sink.take(), done);
  proto::RegisterNodeReply reply;
  reply.add_dead_jobs(job.binary());
  news.registered(reply, true);
  EXPECT_EQ(sink.take(), done) << "it left while this node was away";
  news.job_finished(JobId());
  EXPECT_EQ(sink.take(), Done{}) << "a driver that had no job yet";
}

TEST_F(ClusterNewsTest, TheRestOfAJobGoesWhenItIsOver) {
  proto::HeadEvent event;
  event.add_over_jobs(job.binary());
  news.event(event);
  EXPECT_EQ(sink.take(), (Done{"core: over " + job.hex(), "store: job " + job.hex()}));
}

TEST_F(ClusterNewsTest, ProcessesAndTheStoreHearOfDeadWorkers) {
  proto::HeadEvent event;
  event.add_dead_workers(driver_worker_id(job).binary());
  news.event(event);
  EXPECT_EQ(sink.take(), (Done{"processes: 0 nodes, 1 dead workers", "store: worker " + driver}));
}

TEST_F(ClusterNewsTest, DriversHearOnceThatTheHeadIsBack) {
  settings.head_reconnect_timeout_ms = 60'000;
  news.registered(reply_with({}), true);
  EXPECT_EQ(sink.take(), Done{});
  news.lost("its connection was reset");
  EXPECT_EQ(sink.take(),
            (Done{"core: head lost",
                  "drivers: The cluster's head at 10.0.0.9:6379 is lost (its connection was "
                  "reset). Tasks and actors go on; what needs the head waits, and this node tries "
                  "for 60 s to reach it."}));
  news.registered(reply_with({}), false);
  EXPECT_EQ(sink.take(), (Done{"drivers: The cluster's head at 10.0.0.9:6379 is back."}));
  news.registered(reply_with({}), false);
  EXPECT_EQ(sink.take(), Done{});
}

}  // namespace
}  // namespace rt::node
