// Records of training runs: which are taken, and what becomes of those whose controller is dead.
#include "observability/state/train_runs.h"

#include <gtest/gtest.h>

namespace rt::state {
namespace {

// A record as a controller writes it, with one attempt of one rank.
Json record(const std::string& id, const std::string& name, const std::string& status,
            int64_t start_ns = 1) {
  return Json::parse(
      R"({"id": ")" + id + R"(", "name": ")" + name + R"(", "status": ")" + status +
      R"(", "status_detail": null, "start_time_ns": )" + std::to_string(start_ns) +
      R"(, "end_time_ns": null, "controller_actor_id": "00112233445566778899aabbccddeeff", "attempts": [
    {"attempt_id": ")" +
      id + R"(_1", "status": "ERRORED", "end_time_ns": 5, "workers": [
      {"world_rank": 0, "status": "DEAD", "node_id": "cd"}]},
    {"attempt_id": ")" +
      id + R"(_2", "status": "RUNNING", "end_time_ns": null, "workers": [
      {"world_rank": 0, "status": "ALIVE", "node_id": "cd"}]}]})");
}

proto::GetActorReply controller(proto::ActorState state, const std::string& why = "") {
  proto::GetActorReply reply;
  reply.set_found(true);
  reply.mutable_actor()->set_state(state);
  reply.mutable_actor()->mutable_death()->set_message(why);
  if (state == proto::ACTOR_DEAD) reply.mutable_actor()->set_end_time_ms(7);
  return reply;
}

TEST(TrainRunsTest, OnlyWholeRecordsAreTaken) {
  const Json good = record("a1", "digits", "RUNNING");
  EXPECT_EQ(parse_train_run(good.dump()), good);
  for (const char* text : {"", "{", "[]", "7", "null", "{}", R"({"id": "a", "name": "b"})",
                           R"({"id": 1, "name": "b", "status": "RUNNING", "attempts": []})",
                           R"({"id": "a", "name": "b", "status": "RUNNING", "attempts": {}})",
                           R"({"id": "a", "name": "b", "status": "RUNNING", "attempts": [1]})"})
    EXPECT_TRUE(parse_train_run(text).is_null()) << text;
  for (const char* missing : {"id", "name", "status", "attempts"}) {
    Json bad = good;
    bad.erase(missing);
    EXPECT_TRUE(parse_train_run(bad.dump()).is_null()) << missing;
  }
  Json bad = good;
  bad["attempts"][1]["workers"][0]["node_id"] = 5;
  EXPECT_TRUE(parse_train_run(bad.dump()).is_null());
  // One record that the head cannot be asked about must not hide all others.
  for (const char* controller : {"", "zz", "00112233"}) {
    bad = good;
    bad["controller_actor_id"] = controller;
    EXPECT_TRUE(parse_train_run(bad.dump()).is_null()) << controller;
  }
  EXPECT_TRUE(parse_train_run(std::string(100'000, '[')).is_null());
}

TEST(TrainRunsTest, ALivingControllerSpeaksForItsRun) {
  const Json running = record("a1", "digits", "RUNNING");
  Json run = running;
  settle_train_run(controller(proto::ACTOR_ALIVE), &run);
  EXPECT_EQ(run, running);
}

TEST(TrainRunsTest, ARunWhoseControllerIsDeadIsAborted) {
  Json run = record("a1", "digits", "RUNNING");
  settle_train_run(controller(proto::ACTOR_DEAD, "it was killed"), &run);
  EXPECT_FALSE(is_under_way(run));
  EXPECT_EQ(run["status"], "ABORTED");
  EXPECT_EQ(run["status_detail"], "its controller ended: it was killed");
  EXPECT_EQ(run["end_time_ns"], 7'000'000);
  EXPECT_EQ(run["attempts"][0]["status"], "ERRORED");
  EXPECT_EQ(run["attempts"][0]["end_time_ns"], 5);
  EXPECT_EQ(run["attempts"][1]["status"], "ABORTED");
  EXPECT_EQ(run["attempts"][1]["end_time_ns"], 7'000'000);
  EXPECT_EQ(run["attempts"][1]["workers"][0]["status"], "DEAD");
}

TEST(TrainRunsTest, ARunWhoseControllerIsForgottenIsAborted) {
  Json run = record("a1", "digits", "SCHEDULING");
  settle_train_run(proto::GetActorReply(), &run);
  EXPECT_EQ(run["status"], "ABORTED");
  EXPECT_TRUE(run["end_time_ns"].is_null());
}

TEST(TrainRunsTest, AnEndThatWasRecordedStays) {
  for (const char* status : {"FINISHED", "ERRORED", "ABORTED"}) {
    const Json ended = record("a1", "digits", status);
    Json run = ended;
    settle_train_run(controller(proto::ACTOR_DEAD, "it was killed"), &run);
    EXPECT_EQ(run, ended);
  }
}

TEST(TrainRunsTest, RunsAreFoundByNameAndId) {
  const Json runs =
      newest_first({record("a1b2", "digits", "FINISHED", 1), record("a1c3", "digits", "RUNNING", 3),
                    record("d4e5", "words", "FINISHED", 2)});
  EXPECT_EQ(runs[0]["id"], "a1c3");
  EXPECT_EQ(runs[2]["id"], "a1b2");
  auto id = [&](const std::string& word) {
    const Json* run = find_train_run(runs, word);
    return run ? text_of(*run, "id") : "";
  };
  EXPECT_EQ(id("digits"), "a1c3") << "the newest";
  EXPECT_EQ(id("words"), "d4e5");
  EXPECT_EQ(id("a1b2"), "a1b2");
  EXPECT_EQ(id("a1b"), "a1b2");
  EXPECT_EQ(id("a1"), "") << "two runs begin so";
  EXPECT_EQ(id(""), "");
  EXPECT_EQ(id("letters"), "");
}

}  // namespace
}  // namespace rt::state
