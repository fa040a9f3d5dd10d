#include "common/base/recent_set.h"

#include <gtest/gtest.h>

namespace rt {
namespace {

TEST(RecentSet, TheOldestIsForgottenBeyondTheBound) {
  RecentSet<int> recent(2);
  EXPECT_TRUE(recent.add(1));
  EXPECT_TRUE(recent.add(2));
  EXPECT_FALSE(recent.add(1));
  EXPECT_TRUE(recent.add(3));
  EXPECT_FALSE(recent.contains(1)) << "its age is that of the first time";
  EXPECT_TRUE(recent.contains(2));
  EXPECT_TRUE(recent.contains(3));
}

}  // namespace
}  // namespace rt
