// ReportPace, with bursts of changes and long silences.
#include "daemons/node_manager/core/report_pace.h"

#include <gtest/gtest.h>

namespace rt::node {
namespace {

class ReportPaceTest : public testing::Test {
 protected:
  static constexpr int64_t kStart = 100'000'000;
  static Settings settings_of_test() {
    Settings settings;
    settings.resource_report_min_interval_ms = 10;
    settings.heartbeat_interval_ms = 1000;
    return settings;
  }
  Now at(int64_t ms) const { return {kStart + ms * 1000, 0}; }
  bool tick(int64_t ms) {
    if (!pace.tick(at(ms))) return false;
    pace.sent(at(ms));
    return true;
  }
  // The time of the next tick, in ms.
  int64_t next_ms() const { return (pace.next_tick_us() - kStart) / 1000; }

  ReportPace pace{settings_of_test()};
};

TEST_F(ReportPaceTest, TheFirstChangeIsReportedAtOnce) {
  EXPECT_EQ(pace.next_tick_us(), -1);
  pace.changed();
  EXPECT_LE(pace.next_tick_us(), kStart);
  EXPECT_TRUE(tick(0));
  EXPECT_EQ(pace.next_tick_us(), -1);
}

TEST_F(ReportPaceTest, ABurstOfChangesIsOneReport) {
  pace.changed();
  EXPECT_TRUE(tick(0));
  for (int i = 0; i < 100; ++i) pace.changed();
  EXPECT_TRUE(pace.is_planned());
  EXPECT_EQ(next_ms(), 10);
  EXPECT_FALSE(tick(9));
  EXPECT_TRUE(tick(10));
  EXPECT_FALSE(pace.is_planned());
}

TEST_F(ReportPaceTest, SilenceIsBrokenByHeartbeats) {
  pace.sent(at(0));
  pace.begin_heartbeats(at(0));
  pace.begin_heartbeats(at(500));
  EXPECT_EQ(next_ms(), 1000);
  EXPECT_TRUE(tick(1000));
  EXPECT_EQ(next_ms(), 2000);
}

TEST_F(ReportPaceTest, AReportOfAChangeReplacesTheNextHeartbeat) {
  pace.sent(at(0));
  pace.begin_heartbeats(at(0));
  pace.changed();
  EXPECT_TRUE(tick(600));
  EXPECT_FALSE(tick(1000)) << "the head has heard of the node a moment ago";
  EXPECT_TRUE(tick(2000));
}

}  // namespace
}  // namespace rt::node
