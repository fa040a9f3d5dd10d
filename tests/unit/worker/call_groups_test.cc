// CallGroups: which waiting call of a concurrent actor starts next.
#include "worker/core/call_groups.h"

#include <gtest/gtest.h>

#include <memory>

namespace rt::worker {
namespace {

using Groups = CallGroups<std::unique_ptr<int>>;

struct CallGroupsTest : ::testing::Test {
  ~CallGroupsTest() override { groups.check_invariants(); }
  void add(int group, int call) { groups.add(group, std::make_unique<int>(call)); }
  // Starts every call that may start and returns them in order.
  std::vector<int> start() {
    std::vector<int> calls;
    while (auto started = groups.next()) calls.push_back(*started->call);
    EXPECT_EQ(groups.startable(), 0u);
    return calls;
  }
  Groups groups;
};

TEST_F(CallGroupsTest, EachGroupHasItsOwnLimitAndOrder) {
  groups.configure(1, {{"io", 2}});
  int io = groups.find("io");
  EXPECT_EQ(groups.find(""), 0);
  EXPECT_EQ(groups.find("nothing"), -1);
  EXPECT_EQ(groups.capacity(), 3);
  for (int call : {1, 2, 3}) add(io, call);
  for (int call : {4, 5}) add(0, call);
  EXPECT_EQ(groups.startable(), 3u);
  EXPECT_EQ(start(), (std::vector<int>{1, 2, 4}));
  groups.done(io);
  EXPECT_EQ(start(), std::vector<int>{3});
  groups.done(0);
  EXPECT_EQ(start(), std::vector<int>{5});
}

TEST_F(CallGroupsTest, TheCallThatCameFirstStartsFirst) {
  groups.configure(10, {{"a", 10}, {"b", 10}});
  add(groups.find("b"), 1);
  add(groups.find("a"), 2);
  add(0, 3);
  add(groups.find("b"), 4);
  EXPECT_EQ(start(), (std::vector<int>{1, 2, 3, 4}));
}

TEST_F(CallGroupsTest, AGroupStartsItsOwn) {
  groups.configure(1, {{"b", 1}, {"a", 2}});
  EXPECT_EQ(groups.names(), (std::vector<std::string>{"", "a", "b"}));
  const int a = groups.find("a");
  add(0, 1);
  for (int call : {2, 3, 4}) add(a, call);
  EXPECT_EQ(groups.startable(a), 2u);
  EXPECT_EQ(*groups.next(a)->call, 2);
  EXPECT_EQ(*groups.next(a)->call, 3);
  EXPECT_FALSE(groups.next(a));
  EXPECT_FALSE(groups.next(groups.find("b")));
  EXPECT_EQ(start(), std::vector<int>{1});
}

TEST_F(CallGroupsTest, WhatWaitsCanBeTaken) {
  groups.configure(1, {{"a", 1}});
  for (int call : {1, 2}) add(0, call);
  for (int call : {3, 4}) add(groups.find("a"), call);
  EXPECT_EQ(start(), (std::vector<int>{1, 3}));
  EXPECT_EQ(groups.take_waiting().size(), 2u);
  groups.done(0);
  EXPECT_FALSE(groups.next());
}

}  // namespace
}  // namespace rt::worker
