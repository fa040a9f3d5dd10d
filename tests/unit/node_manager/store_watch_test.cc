// StoreWatch, with a store that answers, hangs, and answers again.
#include "daemons/node_manager/core/store_watch.h"

#include <gtest/gtest.h>

namespace rt::node {
namespace {

constexpr int64_t kIntervalUs = 1'000, kLimitUs = 5'000;

Now at(int64_t us) { return {us, us + 1'000'000}; }

TEST(StoreWatch, AsksAtOnceAndThenOneIntervalAfterEachAnswer) {
  StoreWatch watch(kIntervalUs, kLimitUs);
  EXPECT_TRUE(watch.tick(at(10)).ask);
  EXPECT_FALSE(watch.tick(at(2'000)).ask) << "one question at a time";
  EXPECT_FALSE(watch.answered(at(2'500)).changed);
  EXPECT_EQ(watch.next_tick_us(), 3'500);
  EXPECT_FALSE(watch.tick(at(3'499)).ask);
  EXPECT_TRUE(watch.tick(at(3'500)).ask);
  EXPECT_FALSE(watch.hangs());
}

TEST(StoreWatch, AStoreThatLeavesAQuestionOpenHangs) {
  StoreWatch watch(kIntervalUs, kLimitUs);
  watch.tick(at(100));
  EXPECT_EQ(watch.next_tick_us(), 5'100);
  EXPECT_FALSE(watch.tick(at(5'099)).changed);
  StoreWatch::Turn turn = watch.tick(at(5'100));
  EXPECT_TRUE(turn.changed);
  EXPECT_FALSE(turn.ask);
  EXPECT_TRUE(watch.hangs());
  EXPECT_EQ(watch.silent_since().steady_us, 100);
  EXPECT_EQ(watch.silent_since().wall_us, 1'000'100);
  EXPECT_EQ(watch.next_tick_us(), -1) << "only an answer changes anything";
  turn = watch.tick(at(60'000));
  EXPECT_FALSE(turn.ask || turn.changed) << "it is told once, and not asked again";
}

TEST(StoreWatch, AnAnswerEndsIt) {
  StoreWatch watch(kIntervalUs, kLimitUs);
  watch.tick(at(0));
  watch.tick(at(kLimitUs));
  EXPECT_TRUE(watch.answered(at(9'000)).changed);
  EXPECT_FALSE(watch.hangs());
  EXPECT_EQ(watch.next_tick_us(), 10'000);
  EXPECT_TRUE(watch.tick(at(10'000)).ask);
  EXPECT_TRUE(watch.tick(at(15'000)).changed) << "the next time is told as well";
}

TEST(StoreWatch, AnAnswerWithinTheLimitIsNoNews) {
  StoreWatch watch(kIntervalUs, kLimitUs);
  watch.tick(at(0));
  EXPECT_FALSE(watch.answered(at(kLimitUs - 1)).changed);
  EXPECT_FALSE(watch.tick(at(kLimitUs)).changed);
}

TEST(StoreWatch, WithoutAnIntervalItAsksAgainAtOnce) {
  StoreWatch watch(0, kLimitUs);
  watch.tick(at(0));
  EXPECT_TRUE(watch.answered(at(5)).ask);
}

}  // namespace
}  // namespace rt::node
