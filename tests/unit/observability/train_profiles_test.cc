// Records of profiles and of their viewers, without connections.
#include "observability/state/train_profiles.h"

#include <gtest/gtest.h>

namespace rt::state {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

TEST(TrainProfiles, OnlyRecordsThatCanBeShownAreKept) {
  EXPECT_EQ(parse_profiles("").size(), 0U);
  EXPECT_EQ(parse_profiles("{}").size(), 0U);
  EXPECT_EQ(parse_profiles(std::string(10'000, '[')).size(), 0U);
  const Json found = parse_profiles(
      R"([{"id": "a", "status": "RECORDED"}, 1, {"id": "b"}, {"id": 2, "status": "FAILED"},
          {"id": "c", "status": "RECORDING"}])");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0]["id"], "a");
  EXPECT_EQ(found[1]["id"], "c");
}

TEST(TrainProfiles, AViewerIsThereAsLongAsItIsRenewed) {
  const std::string text = viewer_text({"http://localhost:6006/", "me", kNow});
  EXPECT_EQ(living_viewer(text, kNow)["url"], "http://localhost:6006/");
  EXPECT_FALSE(living_viewer(text, kNow + kViewerRenewedMs).is_null());
  EXPECT_FALSE(living_viewer(text, kNow + kViewerGoneMs).is_null());
  EXPECT_TRUE(living_viewer(text, kNow + kViewerGoneMs + 1).is_null());
  // Clocks of other machines may be ahead, but not by any time.
  EXPECT_FALSE(living_viewer(text, kNow - kViewerGoneMs).is_null());
  EXPECT_TRUE(living_viewer(text, kNow - kViewerGoneMs - 1).is_null());
}

TEST(TrainProfiles, AViewerIsNoLinkToAnythingElse) {
  EXPECT_TRUE(living_viewer("", kNow).is_null());
  EXPECT_TRUE(living_viewer("[]", kNow).is_null());
  EXPECT_TRUE(living_viewer(R"({"url": "http://a/", "time_ms": 1700000000000})", kNow).is_null());
  EXPECT_TRUE(living_viewer(viewer_text({"javascript:alert(1)", "me", kNow}), kNow).is_null());
}

TEST(TrainProfiles, TheAnswerMayTakeAsLongAsTheStepsMay) {
  const int64_t usual = longest_profile_us(Json::object());
  EXPECT_EQ(longest_profile_us({{"steps", 3}, {"timeout_s", 120}}), usual);
  EXPECT_GT(longest_profile_us({{"steps", 10}}), usual);
  EXPECT_GT(longest_profile_us({{"timeout_s", 1000}}), usual);
  EXPECT_GT(longest_profile_us({{"timeout_s", -1e9}}), 0);
  EXPECT_LE(longest_profile_us({{"steps", 1e18}, {"timeout_s", 1e18}}),
            int64_t{7} * 86'400'000'000);
  EXPECT_EQ(longest_profile_us({{"steps", "many"}}), usual);
}

}  // namespace
}  // namespace rt::state
