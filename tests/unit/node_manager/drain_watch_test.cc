// DrainWatch: when a node that is asked to leave accepts, and when it goes.
#include "daemons/node_manager/core/drain_watch.h"

#include "core_fixture.h"

namespace rt::node {
namespace {

class DrainWatchTest : public NodeCoreTest {
 protected:
  DrainWatchTest() {
    make(1);
    watch = std::make_unique<DrainWatch>(*core);
  }
  void lease_a_worker() {
    want(1, demand(1));
    start_worker();
    grant = take_grant();
  }
  Result<proto::DrainReply> ask(proto::NodeDeath reason, int64_t deadline_ms = 0,
                                int64_t store_used = 0) {
    proto::DrainRequest request;
    request.set_reason(reason);
    request.set_deadline_ms(deadline_ms);
    request.set_message("the spot market");
    return watch->ask(request, store_used, now());
  }
  // Ticks until the node leaves, at most for `ms`. Returns how long that took, or -1.
  int64_t leaves_within(int64_t ms) {
    const int64_t began_us = time_us;
    while (watch->next_tick_us() >= 0 && watch->next_tick_us() <= began_us + ms * kMs) {
      time_us = watch->next_tick_us();
      if (watch->tick(now())) return (time_us - began_us) / kMs;
    }
    return -1;
  }

  std::unique_ptr<DrainWatch> watch;
  RecordingSink::Grant grant;
};

TEST_F(DrainWatchTest, AnIdleNodeLeavesSoon) {
  ASSERT_TRUE(ask(proto::DRAINED_IDLE)->accepted());
  EXPECT_EQ(watch->accepted()->message(), "the spot market");
  EXPECT_EQ(leaves_within(1'000), 100);
  EXPECT_EQ(watch->next_tick_us(), -1);
}

TEST_F(DrainWatchTest, ABusyNodeDoesNotLeaveForIdleness) {
  lease_a_worker();
  const auto reply = ask(proto::DRAINED_IDLE);
  EXPECT_FALSE(reply->accepted());
  EXPECT_EQ(reply->why_not(), "it is not idle: 1 leased worker");
  EXPECT_EQ(watch->accepted(), nullptr);
  EXPECT_EQ(watch->next_tick_us(), -1);
}

TEST_F(DrainWatchTest, ObjectsMakeANodeBusy) {
  EXPECT_EQ(ask(proto::DRAINED_IDLE, 0, 5)->why_not(), "it is not idle: objects of 5 bytes");
}

TEST_F(DrainWatchTest, ItLeavesWhenItsWorkIsDone) {
  lease_a_worker();
  ASSERT_TRUE(ask(proto::DRAINED_FOR_PREEMPTION)->accepted());
  EXPECT_EQ(leaves_within(60'000), -1) << "without a deadline it waits";
  give_back(grant);
  EXPECT_NE(leaves_within(1'000), -1);
}

TEST_F(DrainWatchTest, ItLeavesAtTheDeadlineThatWasSaidLast) {
  lease_a_worker();
  ASSERT_TRUE(ask(proto::DRAINED_FOR_PREEMPTION, 60'000)->accepted());
  ASSERT_TRUE(ask(proto::DRAINED_FOR_PREEMPTION, 2'000)->accepted());
  EXPECT_EQ(watch->accepted()->deadline_ms(), now().wall_us / 1000 + 2'000);
  EXPECT_EQ(leaves_within(10'000), 2'000);
}

TEST_F(DrainWatchTest, NonsenseIsRefused) {
  EXPECT_EQ(ask(static_cast<proto::NodeDeath>(77)).error().code, Code::kInvalid);
  EXPECT_EQ(ask(proto::DRAINED_IDLE, -1).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace rt::node
