// The use of one process in the views of the HTTP interface.
#include "daemons/head/http/node_view.h"

#include <gtest/gtest.h>

#include "daemons/head/http/last_readings.h"

namespace rt::head {
namespace {

proto::HostStats reading(int64_t wall_us, double cpu_seconds, int64_t rss) {
  proto::HostStats stats;
  stats.set_wall_time_us(wall_us);
  auto* usage = stats.add_processes();
  usage->set_pid(7);
  usage->set_cpu_seconds(cpu_seconds);
  usage->set_rss(rss);
  usage->set_threads(3);
  return stats;
}

TEST(NodeViewTest, TheUseOfAProcess) {
  NodeReport report;
  report.before = reading(1'000'000, 10, 100);
  report.now = reading(3'000'000, 11, 200);
  const Json stats = process_stats(report, 7);
  EXPECT_EQ(stats["cpuPercent"], 50);
  EXPECT_EQ(stats["memoryInfo"]["rss"], 200);
  EXPECT_EQ(stats["numThreads"], 3);
  EXPECT_TRUE(process_stats(report, 8).is_null());
  report.before = {};
  EXPECT_EQ(process_stats(report, 7)["cpuPercent"], 0) << "nothing to compare with";
}

TEST(NodeViewTest, ReadingsAreThoseOfTheSameNode) {
  LastReadings readings;
  const NodeId a = NodeId::from_binary(std::string(NodeId::kSize, 'a')),
               b = NodeId::from_binary(std::string(NodeId::kSize, 'b'));
  EXPECT_EQ(readings.exchange(a, reading(1, 0, 0)).wall_time_us(), 0);
  EXPECT_EQ(readings.exchange(b, reading(2, 0, 0)).wall_time_us(), 0);
  EXPECT_EQ(readings.exchange(a, reading(3, 0, 0)).wall_time_us(), 1);
  readings.keep({a});
  EXPECT_EQ(readings.exchange(b, reading(4, 0, 0)).wall_time_us(), 0);
  EXPECT_EQ(readings.exchange(a, reading(5, 0, 0)).wall_time_us(), 3);
}

}  // namespace
}  // namespace rt::head
