// Tests from which other demands a starved demand keeps resources.
#include "core_fixture.h"

namespace rt::node {
namespace {

// The starved demand needs the CPU of the task that waits in a loop for its child.
TEST_F(NodeCoreTest, WhatAStarvedDemandKeepsFreeIsNotKeptFromChildrenOfWhatItWaitsFor) {
  make(2, 2);
  start_workers(2);
  want(1, demand(1));
  auto parent = take_grant();
  want(2, demand(1, {{"CPU", 2}}));
  pass(1100 * kMs);
  sink.revokes.clear();
  want(3, demand(1));
  EXPECT_EQ(sink.rest(), "") << "it is kept from others";
  want(4, demand(1), worker_of(parent));
  EXPECT_EQ(take_grant().owner, 4u);
}

// Otherwise a task whose children never end would keep the starved demand out for ever.
TEST_F(NodeCoreTest, WhatAStarvedDemandKeepsFreeIsKeptFromChildrenOfATaskThatItCanDoWithout) {
  make(3, 3);
  start_workers(3);
  want(1, demand(1));
  auto parent = take_grant();
  want(2, demand(1));
  auto other = take_grant();
  want(3, demand(1, {{"CPU", 2}}));
  pass(1100 * kMs);
  sink.revokes.clear();
  want(4, demand(1), worker_of(parent));
  EXPECT_EQ(sink.rest(), "");
  give_back(other);
  EXPECT_EQ(take_grant().owner, 3u);
}

}  // namespace
}  // namespace rt::node
