// Where the ranks of a training run are and spend their time, as text.
#include "cli/train/train_ranks_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/train/train_text.h"

namespace rt::cli {
namespace {

using api_json::Json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Json look() {
  return Json::parse(R"json({
    "verdict": "STRAGGLER", "stragglers": [1], "sentence": "Rank 1 is the straggler.",
    "missing": ["rank 2 (process 14 on 10.0.0.2): the process ended meanwhile"],
    "notes": ["rank 0 (process 12 on 10.0.0.1): 1 thread did not answer"],
    "ranks": [
      {"world_rank": 0, "node_id": "0123456789abcdef", "node_ip": "10.0.0.1", "pid": 12,
       "samples": 200, "step_s": 0.0425, "where": "train (a.py:7), in a collective",
       "shares": {"own": 0.25, "own_asleep": 0.004, "data": 0.016, "report": 0.02,
                  "for_ranks": 0.1, "collective": 0.61}},
      {"world_rank": 1, "node_id": "fedcba9876543210", "node_ip": "10.0.0.2", "pid": 13,
       "samples": 200, "where": "slow\u001b[31m (a.py:9)",
       "shares": {"own": 0.95, "own_asleep": 0, "data": 0, "report": 0, "for_ranks": 0,
                  "collective": 0.05}}]})json");
}

TEST(TrainRanksTextTest, TheVerdictComesBeforeTheShares) {
  const std::string text = train_look_text(look());
  EXPECT_THAT(text, StartsWith("Rank 1 is the straggler.\n\n"));
  EXPECT_THAT(text, ContainsRegex("\n0 +10.0.0.1 0123456789ab +12 +0.043s +61 % +10 % +2 % +2 % "
                                  "+0 % +25 % +train .a.py:7., in a collective\n"));
  EXPECT_THAT(text, ContainsRegex("\n1 +10.0.0.2 fedcba987654 +13 +5 % +0 % +0 % +0 % +0 % +95 %"));
  EXPECT_THAT(text, HasSubstr("rank 2 (process 14 on 10.0.0.2): the process ended meanwhile\n"));
  EXPECT_THAT(text, HasSubstr("1 thread did not answer\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(TrainRanksTextTest, PlacesNeedNoShares) {
  const Json places =
      Json::parse(R"json({"ranks": [{"world_rank": 3, "where": "train (a.py:7)"}]})json");
  EXPECT_EQ(train_places_text(places), "\nRANK  WHERE IT IS NOW\n3     train (a.py:7)\n");
  EXPECT_THAT(train_look_text(places), HasSubstr("train (a.py:7)"));
  EXPECT_EQ(train_places_text(Json::object()), "\nRANK  WHERE IT IS NOW\n");
}

TEST(TrainRanksTextTest, RanksThatHaveNotComeAreNamedWithTheirPlaces) {
  Json attempt = Json::parse(R"json({"workers": [
      {"world_rank": 0, "node_ip": "10.0.0.1", "node_id": "0123456789abcdef", "pid": 12},
      {"world_rank": 1, "node_ip": "10.0.0.2", "node_id": "fedcba9876543210", "pid": 13}],
    "waiting": {"since_time_ns": 1700000000000000000, "missing_ranks": [1],
                "calls": {"0": "report"}}})json");
  EXPECT_THAT(train_missing_text(attempt),
              ContainsRegex("^  rank 1 .10.0.0.2 fedcba987654, process 13. has not come since "
                            "20[0-9-]+ [0-9:]+, for which wait: rank 0 in report..\n$"));
  attempt["waiting"]["missing_ranks"] = {1, 7};
  EXPECT_THAT(train_missing_text(attempt), HasSubstr("process 13), rank 7 have not come since "));
  for (const char* other : {"null", "7", "{}", R"({"missing_ranks": 1, "calls": {}})"}) {
    attempt["waiting"] = Json::parse(other);
    EXPECT_EQ(train_missing_text(attempt), "") << other;
  }
  attempt.erase("waiting");
  EXPECT_EQ(train_missing_text(attempt), "");
}

}  // namespace
}  // namespace rt::cli
