// DeathNews: deaths in bursts, and at the end of the node.
#include "daemons/node_manager/core/death_news.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/rng.h"

namespace rt::node {
namespace {

class DeathNewsTest : public testing::Test {
 protected:
  Now now() const { return {us, us}; }
  WorkerId die() {
    const WorkerId id = WorkerId::random(rng);
    news.died(id, now());
    return id;
  }
  static std::vector<std::string> ids(const DeathNews::WorkerIds& told) {
    return {told.begin(), told.end()};
  }

  Rng rng{1};
  int64_t us = 1'000'000;
  DeathNews news;
};

TEST_F(DeathNewsTest, ABurstIsToldInOneMessageToAll) {
  EXPECT_EQ(news.next_tick_us(), -1);
  const WorkerId first = die();
  us += 4000;
  const WorkerId second = die();
  us += 999;
  EXPECT_FALSE(news.tick(now())) << "more may follow";
  EXPECT_EQ(news.next_tick_us(), us + 1);
  ++us;
  const auto told = news.tick(now());
  ASSERT_TRUE(told);
  const std::vector<std::string> both{first.binary(), second.binary()};
  EXPECT_EQ(ids(told->head.worker_ids()), both);
  EXPECT_EQ(ids(told->processes.dead_workers()), both);
  EXPECT_EQ(ids(told->store.worker_ids()), both);
}

TEST_F(DeathNewsTest, EachDeathIsToldOnce) {
  die();
  us += 5000;
  EXPECT_TRUE(news.tick(now()));
  EXPECT_EQ(news.next_tick_us(), -1);
  us += 5000;
  EXPECT_FALSE(news.tick(now()));
  const WorkerId next = die();
  us += 5000;
  const auto told = news.tick(now());
  ASSERT_TRUE(told);
  EXPECT_EQ(ids(told->head.worker_ids()), std::vector{next.binary()});
}

TEST_F(DeathNewsTest, WhenTheNodeEndsOnlyEarlierDeathsAreTold) {
  const WorkerId earlier = die();
  news.stop();
  const WorkerId later = die();
  us += 5000;
  const auto told = news.tick(now());
  ASSERT_TRUE(told);
  EXPECT_EQ(ids(told->head.worker_ids()), (std::vector{earlier.binary(), later.binary()}));
  die();
  EXPECT_EQ(news.next_tick_us(), -1);
}

TEST_F(DeathNewsTest, OfDeathsElsewhereTheHeadIsNotTold) {
  DeathNews::WorkerIds dead;
  *dead.Add() = WorkerId::random(rng).binary();
  const DeathNews::Told told = DeathNews::heard(dead);
  EXPECT_EQ(told.head.worker_ids_size(), 0);
  EXPECT_EQ(ids(told.processes.dead_workers()), ids(dead));
  EXPECT_EQ(ids(told.store.worker_ids()), ids(dead));
}

}  // namespace
}  // namespace rt::node
