// Which node a task with large arguments should run on.
#include "worker/core/locality.h"

#include <gtest/gtest.h>

#include <deque>

#include "common/base/rng.h"

namespace rt::worker {
namespace {

NodeId node_number(uint64_t n) {
  Rng rng(n);
  return NodeId::random(rng);
}

class LocalityTest : public ::testing::Test {
 protected:
  const ObjectEntry* argument(int64_t megabytes, std::initializer_list<uint64_t> nodes) {
    ObjectEntry& entry = entries.emplace_back();
    entry.size = megabytes << 20;
    for (uint64_t n : nodes) entry.mutable_details().locations.push_back({node_number(n), "ip", 1});
    return &entry;
  }
  std::optional<PreferredNode> preferred(std::vector<const ObjectEntry*> args) {
    return preferred_node(std::move(args), node_number(0), int64_t{100} << 20);
  }
  std::deque<ObjectEntry> entries;
};

TEST_F(LocalityTest, WhatIsHereOrLightHasNoPreference) {
  const ObjectEntry* light = argument(0, {1});
  EXPECT_FALSE(preferred({}));
  EXPECT_FALSE(preferred({light}));
  EXPECT_FALSE(preferred({argument(90, {0})}));
  EXPECT_FALSE(preferred({argument(90, {1, 0}), light}));
}

TEST_F(LocalityTest, TheOwnersNodeIsAsGoodAsOthersForWhatItHolds) {
  EXPECT_FALSE(preferred({argument(40, {0}), argument(30, {1})}));
  auto found = preferred({argument(30, {0}), argument(40, {1})});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->node, node_number(1));
  EXPECT_TRUE(found->others_too);
}

TEST_F(LocalityTest, HeavyArgumentsAreBestWhereMostOfThemLies) {
  auto found = preferred({argument(20, {1}), argument(30, {2}), argument(20, {1, 2})});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->node, node_number(2));
  EXPECT_TRUE(found->others_too);
}

TEST_F(LocalityTest, WhatCanNeverBeHereTogetherRunsOnlyElsewhere) {
  auto found = preferred({argument(60, {1}), argument(60, {0})});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->node, node_number(1));
  EXPECT_FALSE(found->others_too);
}

TEST_F(LocalityTest, AnArgumentThatOccursTwiceCountsOnce) {
  const ObjectEntry* twice = argument(60, {1});
  auto found = preferred({twice, twice, argument(10, {2})});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->node, node_number(1));
  EXPECT_TRUE(found->others_too);
}

TEST_F(LocalityTest, WhatFoundNoRoomGoesWhereMostOfTheRestLies) {
  auto not_on = [](int full) {
    return [full = node_number(full)](const NodeId& node) { return node != full; };
  };
  EXPECT_EQ(node_beside({argument(60, {1}), argument(20, {2}), argument(10, {0})}, not_on(1)),
            node_number(2));
  EXPECT_EQ(node_beside({argument(60, {1})}, not_on(1)), std::nullopt);
  EXPECT_EQ(node_beside({argument(60, {1, 0})}, not_on(1)), node_number(0));
}

TEST_F(LocalityTest, WithoutAnotherPlaceThereIsNoPreference) {
  EXPECT_FALSE(preferred({argument(90, {})}));
}

}  // namespace
}  // namespace rt::worker
