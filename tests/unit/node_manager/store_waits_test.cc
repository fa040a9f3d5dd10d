// Tells drivers and the head of requests that wait for room in the node's object store.
#include "daemons/node_manager/core/store_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rt::node {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreWaitsTest : public testing::Test {
 protected:
  static proto::StoreWaiter waiter(uint32_t job, int64_t since_ms) {
    proto::StoreWaiter waiter;
    waiter.set_worker_id(driver_worker_id(job_id_from_int(job)).binary());
    waiter.set_job_id(job_id_from_int(job).binary());
    waiter.set_pid(7);
    waiter.set_count(2);
    waiter.set_bytes(60 << 20);
    waiter.set_since_ms(since_ms);
    return waiter;
  }
  static proto::StoreStats stats(std::vector<proto::StoreWaiter> waiters, int64_t used = 66 << 20) {
    proto::StoreStats stats;
    stats.set_used(used);
    stats.set_capacity(80 << 20);
    for (auto& waiter : waiters) *stats.add_waiters() = std::move(waiter);
    return stats;
  }
  StoreWaits::Turn at(int64_t ms, const proto::StoreStats& stats) {
    return waits.take(stats, {ms * 1000, ms * 1000});
  }

  StoreWaits waits{NodeId::nil(), "10.0.0.7", 5000};
};

TEST_F(StoreWaitsTest, TheDriverOfAJobIsToldOncePerEpisodeWithTheSetting) {
  const auto full = stats({waiter(1, 10'000)});
  EXPECT_THAT(at(10'900, full).notices, IsEmpty());
  auto told = at(11'000, full).notices;
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].job_id(), job_id_from_int(1).binary());
  EXPECT_THAT(told[0].message(),
              AllOf(HasSubstr("2 puts or results of tasks wait for room in the object store of "
                              "node 10.0.0.7 since"),
                    HasSubstr("60.00MiB wanted, 66.00MiB of 80.00MiB used"),
                    HasSubstr("after 5000 ms without room (create_wait_ms)"),
                    HasSubstr("--object-store-memory"), HasSubstr("rayctl debug")));
  EXPECT_THAT(at(12'000, full).notices, IsEmpty());
  // Another job has an episode of its own.
  EXPECT_EQ(at(12'500, stats({waiter(1, 10'000), waiter(2, 11'000)})).notices.size(), 1u);
  at(13'000, stats({}));
  EXPECT_THAT(at(22'499, stats({waiter(1, 20'000)})).notices, IsEmpty());  // The same episode.
  at(23'000, stats({}));
  at(32'500, stats({}));
  EXPECT_EQ(at(40'000, stats({waiter(1, 38'000)})).notices.size(), 1u);
}

TEST_F(StoreWaitsTest, TheReportChangesOnlyWhileSomethingWaits) {
  EXPECT_FALSE(at(1'000, stats({})).changed);
  EXPECT_FALSE(at(1'500, stats({}, 7)).changed);
  EXPECT_EQ(waits.waits(), nullptr);
  EXPECT_TRUE(at(2'000, stats({waiter(1, 1'900)})).changed);
  EXPECT_FALSE(at(2'500, stats({waiter(1, 1'900)})).changed);
  EXPECT_TRUE(at(3'000, stats({waiter(1, 1'900)}, 7)).changed);
  ASSERT_NE(waits.waits(), nullptr);
  EXPECT_EQ(waits.waits()->fails_after_ms(), 5000);
  EXPECT_EQ(waits.waits()->used(), 7);
  EXPECT_EQ(waits.waits()->waiters(0).pid(), 7);
  EXPECT_TRUE(at(3'500, stats({})).changed);
  EXPECT_EQ(waits.waits(), nullptr);
  EXPECT_FALSE(at(4'000, stats({})).changed);
}

}  // namespace
}  // namespace rt::node
