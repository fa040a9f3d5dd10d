// The head's history of metrics: bounded in time and in bytes, including the nodes that have left.
#include <gtest/gtest.h>

#include "daemons/head/core/metrics_history.h"

namespace rt::head {
namespace {

constexpr int64_t kHourMs = 3'600'000, kStepMs = 10'000;

// The steady clock has nothing to do with it.
Now at_ms(int64_t wall_ms) { return {.steady_us = 77, .wall_us = wall_ms * 1000}; }

NodeId node(int n) {
  return NodeId::from_binary(std::string(NodeId::kSize - 1, 'n') + static_cast<char>('a' + n));
}

proto::NodeSample sample(double cpu, int64_t memory) {
  proto::NodeSample out;
  out.set_cpu_percent(static_cast<float>(cpu));
  out.set_memory_used(memory);
  return out;
}

proto::MetricsHistoryReply ask(const MetricsHistory& history, int64_t now_ms, int max_points = 0,
                               int64_t since_ms = 0) {
  proto::MetricsHistoryRequest request;
  request.set_all_nodes(true);
  request.set_max_points(max_points);
  request.set_since_ms(since_ms);
  proto::MetricsHistoryReply reply;
  history.fill(request, [](const NodeId& id) { return id == node(0); }, &reply, at_ms(now_ms));
  return reply;
}

std::vector<float> line(const proto::MetricsLines& lines, const std::string& name) {
  for (const auto& one : lines.lines()) {
    if (one.name() == name) return {one.values().begin(), one.values().end()};
  }
  return {};
}

TEST(MetricsHistory, KeepsWhatNodesSaidAndTheirSums) {
  MetricsHistory history(kHourMs, 1 << 20);
  history.add(node(0), "10.0.0.1", sample(10, 100), at_ms(1000));
  history.add(node(1), "10.0.0.2", sample(30, 50), at_ms(1500));
  history.add_cluster({.nodes = 2, .cpus = 8, .cpus_used = 3, .finished_per_s = 5}, kStepMs,
                      at_ms(2000));
  history.check_invariants();
  auto reply = ask(history, 2000);
  EXPECT_EQ(line(reply.cluster(), "nodes"), std::vector<float>{2});
  EXPECT_EQ(line(reply.cluster(), "memory_used"), std::vector<float>{150});
  EXPECT_EQ(line(reply.cluster(), "cpu_percent"), std::vector<float>{20});
  EXPECT_EQ(line(reply.cluster(), "finished_per_s"), std::vector<float>{5});
  ASSERT_EQ(reply.nodes_size(), 2);
  EXPECT_EQ(reply.nodes(0).ip(), "10.0.0.1");
  EXPECT_TRUE(reply.nodes(0).alive());
  EXPECT_FALSE(reply.nodes(1).alive());
  EXPECT_EQ(line(reply.nodes(1), "cpu_percent"), std::vector<float>{30});
  EXPECT_EQ(reply.nodes(1).time_ms(0), 1500);
}

TEST(MetricsHistory, ANodeThatLeftKeepsItsPastAndIsInNoSum) {
  MetricsHistory history(kHourMs, 1 << 20);
  history.add(node(0), "a", sample(0, 1), at_ms(0));
  history.add(node(1), "b", sample(0, 1000), at_ms(0));
  history.add(node(0), "a", sample(0, 1), at_ms(5 * kStepMs));
  history.add_cluster({}, 3 * kStepMs, at_ms(5 * kStepMs));
  auto reply = ask(history, 5 * kStepMs);
  EXPECT_EQ(line(reply.cluster(), "memory_used"), std::vector<float>{1});
  EXPECT_EQ(reply.nodes_size(), 2);
  // Samples of a node that has left are forgotten when they are too old, like all others.
  history.add(node(0), "a", sample(0, 1), at_ms(2 * kHourMs));
  history.check_invariants();
  EXPECT_EQ(ask(history, 2 * kHourMs).nodes_size(), 1);
  EXPECT_EQ(history.samples(), 1u);
}

TEST(MetricsHistory, ANodeThatLeftBeforeTheClockWasSetBackIsInNoSum) {
  MetricsHistory history(kHourMs, 1 << 20);
  history.add(node(1), "b", sample(0, 1000), at_ms(kHourMs));
  history.add(node(0), "a", sample(0, 1), at_ms(kHourMs / 2));
  history.add_cluster({}, 3 * kStepMs, at_ms(kHourMs / 2));
  EXPECT_EQ(line(ask(history, kHourMs / 2).cluster(), "memory_used"), std::vector<float>{1});
}

TEST(MetricsHistory, BytesAreBoundedAndTheClusterHasItsShare) {
  const int64_t most = 64 << 10;
  MetricsHistory history(100 * kHourMs, most);
  for (int64_t step = 0; step < 3000; ++step) {
    for (int n = 0; n < 20; ++n) history.add(node(n), "ip", sample(n, 1), at_ms(step * kStepMs));
    history.add_cluster({}, kStepMs, at_ms(step * kStepMs));
    ASSERT_LE(history.bytes(), most);
  }
  history.check_invariants();
  auto reply = ask(history, 3000 * kStepMs);
  EXPECT_EQ(reply.nodes_size(), 20);
  EXPECT_GT(reply.cluster().time_ms_size(), 100);
  EXPECT_EQ(reply.cluster().time_ms(reply.cluster().time_ms_size() - 1), 2999 * kStepMs);
}

TEST(MetricsHistory, NeighboursAreAveraged) {
  MetricsHistory history(kHourMs, 1 << 20);
  for (int step = 0; step < 10; ++step)
    history.add(node(0), "a", sample(step, 1), at_ms(step * kStepMs));
  auto lines = ask(history, 9 * kStepMs, 4).nodes(0);
  EXPECT_EQ(line(lines, "cpu_percent"), (std::vector<float>{1, 4, 7, 9}));
  EXPECT_EQ(std::vector<int64_t>(lines.time_ms().begin(), lines.time_ms().end()),
            (std::vector<int64_t>{2 * kStepMs, 5 * kStepMs, 8 * kStepMs, 9 * kStepMs}));
  EXPECT_EQ(ask(history, 9 * kStepMs, 0, 8 * kStepMs).nodes(0).time_ms_size(), 2);
}

}  // namespace
}  // namespace rt::head
