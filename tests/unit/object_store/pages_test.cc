#include "daemons/object_store/core/pages.h"

#include <gtest/gtest.h>

#include "tests/unit/object_store/core_fixture.h"

namespace rt::store {
namespace {

Now time_at(int64_t us) { return {.steady_us = us, .wall_us = us}; }

TEST(Pages, AreAskedForOnceAtATimeAndNeverBeyondTheCapacity) {
  Pages pages(10 * kMiB);
  EXPECT_EQ(pages.ask(4 * kMiB), 4 * kMiB);
  EXPECT_EQ(pages.ask(8 * kMiB), std::nullopt) << "a request is under way";
  pages.answered(4 * kMiB, {}, time_at(1));
  EXPECT_EQ(pages.ask(4 * kMiB), std::nullopt) << "they exist";
  EXPECT_TRUE(pages.exist({3 * kMiB, kMiB}));
  EXPECT_FALSE(pages.exist({3 * kMiB, kMiB + 1}));
  EXPECT_EQ(pages.ask(99 * kMiB), 10 * kMiB);
}

TEST(Pages, AShortageIsForgottenASecondLater) {
  Pages pages(10 * kMiB);
  ASSERT_TRUE(pages.ask(8 * kMiB));
  pages.answered(3 * kMiB, make_error(Code::kIo, "the file system is full"), time_at(500));
  EXPECT_EQ(pages.reserved(), 3 * kMiB);
  ASSERT_TRUE(pages.shortage());
  EXPECT_EQ(pages.shortage()->message, "the file system is full");
  EXPECT_EQ(pages.retry_us(), 1'000'500);
  EXPECT_FALSE(pages.forget_shortage(time_at(1'000'499)));
  EXPECT_TRUE(pages.shortage());
  EXPECT_TRUE(pages.forget_shortage(time_at(1'000'500)));
  EXPECT_FALSE(pages.shortage());
  EXPECT_FALSE(pages.forget_shortage(time_at(9'000'000))) << "there is none";
}

}  // namespace
}  // namespace rt::store
