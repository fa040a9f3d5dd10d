// `rayctl train` prints runs with their attempts, ranks, last reports and lines of logs.
#include "cli/train/train_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rt::cli {
namespace {

using api_json::Json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNowMs = 1'700'000'100'000;

Json run() {
  return Json::parse(R"({
    "id": "a1b2c3", "name": "digits", "job_id": "01000000", "status": "RUNNING",
    "status_detail": null, "start_time_ns": 1700000000000000000, "end_time_ns": null,
    "controller_actor_id": "ab",
    "attempts": [
      {"attempt_id": "a1b2c3_1", "status": "ERRORED", "status_detail": "rank 1 died\nmore",
       "start_time_ns": 1700000000000000000, "end_time_ns": 1700000003500000000, "workers": [
        {"world_rank": 0, "local_rank": 0, "node_rank": 0, "node_ip": "10.0.0.1",
         "node_id": "0123456789abcdef", "pid": 11, "gpu_ids": [], "status": "DEAD"}]},
      {"attempt_id": "a1b2c3_2", "status": "RUNNING", "status_detail": null,
       "start_time_ns": 1700000004000000000, "end_time_ns": null, "workers": [
        {"world_rank": 0, "local_rank": 0, "node_rank": 0, "node_ip": "10.0.0.1",
         "node_id": "0123456789abcdef", "pid": 12, "gpu_ids": ["0", "3"], "status": "ALIVE"},
        {"world_rank": 1, "local_rank": 0, "node_rank": 1, "node_ip": "10.0.0.2",
         "node_id": "fedcba9876543210", "pid": 13, "gpu_ids": [], "status": "ALIVE"}]},
      {"attempt_id": "a1b2c3_3", "status": "PENDING", "status_detail": null,
       "start_time_ns": 1700000004000000000, "end_time_ns": null, "workers": []}]})");
}

TEST(TrainTextTest, ALineForEachRun) {
  Json ended = run();
  ended["status"] = "ABORTED";
  const std::string text = train_list_text({run(), ended}, kNowMs);
  EXPECT_THAT(text, ContainsRegex("digits +RUNNING +3 +2 .* 1m40s +01000000 +a1b2c3\n"));
  EXPECT_THAT(text, ContainsRegex("digits +ABORTED +3 +2 .*:[0-9][0-9] +01000000"))
      << "a run that ended at an unknown time has no length";
}

TEST(TrainTextTest, ARunShowsItsAttemptsAndTheirRanks) {
  const std::string text = train_run_text(run(), Json(), kNowMs);
  EXPECT_THAT(text, HasSubstr("Run digits (a1b2c3): RUNNING\n"));
  EXPECT_THAT(text, ContainsRegex("Attempt 1: ERRORED, started .*, lasted 3.5s\n  rank 1 died\n"));
  EXPECT_THAT(text, ContainsRegex("\n1 +0 +1 +10.0.0.2 +fedcba987654 +13 .*ALIVE\n"));
  EXPECT_THAT(text, ContainsRegex("\n0 +0 +0 +10.0.0.1 +0123456789ab +12 +0,3 +ALIVE\n"));
  EXPECT_THAT(text, ContainsRegex("Attempt 3: PENDING"));
  EXPECT_THAT(text, Not(HasSubstr("last report")));
  EXPECT_THAT(text, Not(HasSubstr("more")));
}

TEST(TrainTextTest, TheLastReportIsShown) {
  const Json metrics = Json::parse(R"({"time_ms": [1, 2], "reports": [1, 2],
    "metrics": {"loss": [0.5, 0.25], "gone": [1, null], "epoch": [0, 1]},
    "ranks": [{"world_rank": 0, "report_s": 1.5, "data_s": 0.25}, {"world_rank": 1}, 7]})");
  const std::string text = train_run_text(run(), metrics, kNowMs);
  EXPECT_THAT(text, HasSubstr("last report: loss=0.25 epoch=1\n"));
  EXPECT_THAT(text, ContainsRegex("\n0 +1.500s +0.250s\n"));
}

TEST(TrainTextTest, NothingElseThanRecordsIsNeeded) {
  // Fields that an older controller did not write.
  const Json bare = Json::parse(
      R"({"id": "a", "name": "b", "status": "RUNNING", "attempts":
          [{"status": "RUNNING", "workers": [{"status": "ALIVE", "node_id": "c"}]}]})");
  EXPECT_THAT(train_run_text(bare, Json::parse(R"({"metrics": 5, "ranks": {}})"), kNowMs),
              HasSubstr("Run b (a): RUNNING"));
  EXPECT_THAT(train_list_text(Json::array({bare}), kNowMs), HasSubstr("RUNNING"));
}

TEST(TrainTextTest, AttemptsAreFoundByNumber) {
  const Json one = run();
  EXPECT_EQ(attempt_number(*find_attempt(one, 1)), 1);
  EXPECT_EQ(attempt_number(*find_attempt(one, 3)), 3);
  EXPECT_EQ(attempt_number(*find_attempt(one, 0)), 2) << "the newest with ranks";
  EXPECT_EQ(find_attempt(one, 4), nullptr);
}

TEST(TrainTextTest, LinesOfLogs) {
  EXPECT_EQ(train_log_line(R"({"asctime": "2026-01-02 03:04:05,678", "levelname": "INFO",
                               "message": "epoch 1\ndone", "world_rank": 0})"),
            "2026-01-02 03:04:05,678 INFO epoch 1\ndone");
  for (const char* line : {"", "a plain line", "{", "[1]", R"({"text": 1})"})
    EXPECT_EQ(train_log_line(line), line);
}

TEST(TrainTextTest, NamesForAnError) {
  EXPECT_EQ(names_text(Json::array()), "there are no training runs");
  EXPECT_EQ(names_text({run(), run()}), "there are: digits");
  Json many = Json::array();
  for (int i = 0; i < 25; ++i) many.push_back({{"name", "run" + std::to_string(i)}});
  EXPECT_THAT(names_text(many), HasSubstr("run19 and 5 more"));
}

}  // namespace
}  // namespace rt::cli
