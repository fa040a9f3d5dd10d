// Profiles of training runs as text.
#include "cli/train/train_profiles_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rt::cli {
namespace {

using state::Json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Json profiles() {
  return Json::parse(R"({"tensorboard": {"url": "http://localhost:6006/"}, "profiles": [
    {"id": "profile_1", "status": "RECORDED", "detail": null, "time_ns": 1700000000000000000,
     "path": "/runs/digits.profiles/profile_1", "steps": 3, "ranks": [
       {"rank": 0, "status": "RECORDED"}, {"rank": 1, "status": "RECORDED"}]},
    {"id": "profile_2", "status": "FAILED", "detail": "rank 1: it has \u001b[31mended",
     "time_ns": 1700000001000000000, "path": "/runs/digits.profiles/profile_2", "steps": 20,
     "ranks": [{"rank": 0, "status": "RECORDED"}, {"rank": 1, "status": "FAILED"}]},
    {"id": "profile_3", "status": "RECORDING", "steps": 1, "ranks": []}]})");
}

TEST(TrainProfilesText, TheNewestComesFirst) {
  const std::string text = train_profiles_text(profiles());
  EXPECT_THAT(text, ContainsRegex("profile_1 +RECORDED .* 3 +2 +/runs/digits.profiles/profile_1"));
  EXPECT_THAT(text, ContainsRegex("profile_2 +FAILED .* 20 +1 of 2 +/runs"));
  EXPECT_LT(text.find("profile_3"), text.find("profile_2 "));
  EXPECT_LT(text.find("profile_2 "), text.find("profile_1 "));
  EXPECT_THAT(text, HasSubstr("\nprofile_2: rank 1: it has \\x1b[31mended\n"));
  EXPECT_THAT(text, HasSubstr("TensorBoard: http://localhost:6006/\n"));
}

TEST(TrainProfilesText, NothingIsSaidOfNothing) {
  EXPECT_EQ(train_profiles_text(Json()), "");
  EXPECT_EQ(train_profiles_text(Json::parse(R"({"profiles": [], "tensorboard": null})")), "");
  EXPECT_EQ(train_profiles_text(Json::parse(R"({"profiles": 1, "tensorboard": 2})")), "");
}

TEST(TrainProfilesText, FieldsOfOtherTypesAreLeftOut) {
  const std::string text = train_profiles_text(
      Json::parse(R"({"profiles": [{"id": 1, "steps": "x", "ranks": [1], "time_ns": "y"}, 2]})"));
  EXPECT_THAT(text, HasSubstr("PROFILE"));
}

TEST(TrainProfilesText, AnAnswerNamesItsFiles) {
  Json answer = {{"summary", "Rank 0\n  step  1 ms\x1b[2J"},
                 {"path", "/runs/p"},
                 {"trace", "/runs/p/merged.trace.json.gz"}};
  const std::string text = train_profile_text(answer);
  EXPECT_THAT(text, HasSubstr("Rank 0\n  step  1 ms\\x1b[2J\n"));
  EXPECT_THAT(text, HasSubstr("The traces of the ranks are in /runs/p\n"));
  EXPECT_THAT(text, HasSubstr("All ranks in one trace: /runs/p/merged.trace.json.gz\n"));
  answer["trace"] = nullptr;
  EXPECT_THAT(train_profile_text(answer), Not(HasSubstr("perfetto")));
}

}  // namespace
}  // namespace rt::cli
