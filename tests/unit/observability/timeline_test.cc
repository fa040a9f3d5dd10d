// The trace (chrome://tracing, Perfetto) that is made of task events.
#include "observability/events/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/unit/observability/event_samples.h"

namespace rt {
namespace {

using nlohmann::json;

json timeline_of(const TaskEventBatchData& batch, Timeline::Options options = {}) {
  std::string text;
  Timeline trace(std::move(options));
  trace.add(batch, &text);
  trace.end(&text);
  return json::parse(text);
}

TEST(Timeline, ATaskIsABodyAroundThreeConsecutivePhases) {
  json events = timeline_of(batch_of({event_of(1, 2)}));
  ASSERT_EQ(events.size(), 4u);
  const json& body = events[0];
  EXPECT_EQ(body["cat"], "task::f");
  EXPECT_EQ(body["name"], "__main__.f");
  EXPECT_EQ(body["pid"], "10.0.0.7");
  EXPECT_EQ(body["tid"], "worker:abcd");
  EXPECT_EQ(body["ph"], "X");
  EXPECT_EQ(body["cname"], "generic_work");
  EXPECT_TRUE(body["ts"].is_number_float());
  EXPECT_EQ(body["ts"], 1.7e15);
  EXPECT_EQ(body["dur"], 240.0);
  EXPECT_EQ(body["args"]["name"], "__main__.f");
  EXPECT_EQ(body["args"]["task_id"], make_task_id(7, job_id_from_int(1)).hex());
  const char* names[] = {"task:deserialize_arguments", "task:execute", "task:store_outputs"};
  const char* colours[] = {"rail_load", "rail_animation", "rail_idle"};
  double at = 1.7e15;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(events[i + 1]["cat"], names[i]);
    EXPECT_EQ(events[i + 1]["name"], names[i]);
    EXPECT_EQ(events[i + 1]["cname"], colours[i]);
    EXPECT_EQ(events[i + 1]["ts"], at);
    EXPECT_EQ(events[i + 1]["args"], json::object());
    at += events[i + 1]["dur"].get<double>();
  }
  EXPECT_EQ(at, 1.7e15 + 240);
}

TEST(Timeline, AFailureIsShownWhereItHappened) {
  json events = timeline_of(batch_of({event_of(1, 2, 3)}));
  ASSERT_EQ(events.size(), 3u) << "no outputs were stored";
  EXPECT_EQ(events[0]["args"]["name"], "__main__.f");
  EXPECT_EQ(events[2]["cat"], "task:execute");
  EXPECT_EQ(
      events[2]["args"],
      (json{{"type", "ValueError"}, {"value", "boom"}, {"traceback", "Traceback:\n  line 1"}}));
}

TEST(Timeline, AFailedConstructorNamesItsCategory) {
  json events = timeline_of(batch_of({event_of(1, 2, 3, 1)}));
  EXPECT_EQ(events[0]["name"], "task::f");
  EXPECT_EQ(events[0]["args"]["type"], "ValueError");
}

TEST(Timeline, FailuresRecordedByTheOwnerAreNotInTheTrace) {
  EXPECT_TRUE(timeline_of(batch_of({event_of(1, 2, 3, TaskEvent::kOwnerFailedTask),
                                    event_of(1, 2, 3, TaskEvent::kOwnerFailedMethod)}))
                  .empty());
}

TEST(Timeline, BadTextStaysValidJson) {
  TaskEventBatchData batch = batch_of({event_of(4, 4)});
  EXPECT_EQ(timeline_of(batch)[0]["name"], "bad \uFFFD\"name");
}

TEST(Timeline, SpansOfAProcessThatProfiles) {
  TaskEventBatchData batch = batch_of({});
  batch.is_driver = true;
  for (const char* type :
       {"submit_task", "ray.get", "ray.put", "ray.wait", "wait_for_function", "mine", "task"}) {
    batch.strings.push_back(type);
    batch.events.push_back(span_of(static_cast<uint32_t>(batch.strings.size() - 1)));
  }
  json events = timeline_of(batch);
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0], (json{{"cat", "submit_task"},
                             {"name", "submit_task"},
                             {"pid", "10.0.0.7"},
                             {"tid", "driver:abcd"},
                             {"ts", 1.7e15},
                             {"dur", 200.0},
                             {"ph", "X"},
                             {"cname", "background_memory_dump"},
                             {"args", json::object()}}));
  const char* colours[] = {
      "background_memory_dump", "good",         "terrible",     "vsync_highlight_color",
      "detailed_memory_dump",   "generic_work", "rail_response"};
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(events[i]["cname"], colours[i]) << i;
  std::string text;
  Timeline trace({});
  trace.add(batch, &text);
  EXPECT_EQ(trace.shown(), 0) << "they are neither tasks nor calls";
}

TEST(Timeline, ASpansExtraData) {
  TaskEventBatchData batch = batch_of({});
  batch.strings.insert(
      batch.strings.end(),
      {"mine", R"({"name":"a \"name\"","cname":"ray.get","k":"v"})", R"({"cname":"b\"lue"})",
       R"({"k":1,"cut off)", R"(["k"])", R"({"n":7,"name":[1,{}]})",
       R"({"k":)" + std::string(2000, '[') + std::string(2000, ']') + "}"});
  for (uint32_t extra : {6, 7, 8, 9, 4, 11, 10}) batch.events.push_back(span_of(5, extra));
  json events = timeline_of(batch);
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0]["cat"], "mine");
  EXPECT_EQ(events[0]["name"], "a \"name\"");
  EXPECT_EQ(events[0]["cname"], "ray.get");
  EXPECT_EQ(events[0]["args"], (json{{"name", "a \"name\""}, {"cname", "ray.get"}, {"k", "v"}}));
  EXPECT_EQ(events[1]["cname"], "b\"lue");
  EXPECT_EQ(events[6]["args"], (json{{"n", 7}, {"name", {1, json::object()}}}));
  EXPECT_EQ(events[6]["name"], "mine");
  for (int wrong : {2, 3, 4, 5})
    EXPECT_TRUE(events[wrong]["name"] == "mine" && events[wrong]["args"] == json::object())
        << wrong;
  json numbered = timeline_of(batch, {.numbered = true});
  EXPECT_EQ(numbered[0]["cname"], "good");
  EXPECT_EQ(numbered[1]["cname"], "generic_work");
  EXPECT_EQ(numbered[0]["args"], (json{{"name", "a \"name\""},
                                       {"cname", "ray.get"},
                                       {"k", "v"},
                                       {"task_id", make_task_id(7, job_id_from_int(1)).hex()},
                                       {"job_id", "01000000"},
                                       {"attempt_number", 0},
                                       {"func_or_class_name", "f"},
                                       {"actor_id", nullptr}}));
  const ActorId actor = make_actor_id(job_id_from_int(1), 5, 5);
  batch.events[0].task = make_task_id(7, actor);
  EXPECT_EQ(timeline_of(batch, {.numbered = true})[0]["args"]["actor_id"], actor.hex());
}

json submissions_of(const json& events) {
  json found = json::array();
  for (const json& event : events) {
    if (event.value("cat", "") == "submit_task") found.push_back(event);
  }
  return found;
}

// As in Ray, each submission is marked once, on the thread of the process that submitted the task.
TEST(Timeline, ASubmissionIsMarkedOnce) {
  TaskEventBatchData batch = batch_of(
      {event_of(1, 2), event_of(1, 2), event_of(1, 2),
       event_of(1, 2, 3, TaskEvent::kOwnerFailedTask),
       event_of(1, 2, 3, TaskEvent::kOwnerFailedTask), event_of(1, 2, 0, TaskEvent::kActorCreation),
       event_of(1, 2, 0, TaskEvent::kActorCreation), event_of(1, 2)});
  batch.strings.push_back(WorkerId::from_binary(std::string(WorkerId::kSize, 'w')).binary() +
                          "10.0.0.8");
  for (size_t i = 0; i < batch.events.size(); ++i) {
    TaskEvent& event = batch.events[i];
    event.created_us = event.start_us - 1000 - static_cast<int64_t>(i);
    if (event.kind != TaskEvent::kOwnerFailedTask) event.owner = 5;
  }
  batch.events[1].attempt = 1;                 // Another attempt of the same submission.
  batch.events[2].submission_recorded = true;  // Its owner has recorded a span for it.
  batch.events[4].attempt = 1;
  const ActorId actor = make_actor_id(job_id_from_int(1), 5, 5);
  batch.events[5].task = make_task_id(1, actor);
  batch.events[6].task = make_task_id(2, actor);  // The same actor after a restart.
  batch.events[7].owner = 0;                      // The owner is unknown.
  json events = timeline_of(batch);
  json marks = submissions_of(events);
  ASSERT_EQ(marks.size(), 3u);
  EXPECT_EQ(marks[0], (json{{"cat", "submit_task"},
                            {"name", "submit_task"},
                            {"pid", "10.0.0.8"},
                            {"tid", "worker:" + to_hex(std::string(WorkerId::kSize, 'w'))},
                            {"ts", 1.7e15 - 1000},
                            {"dur", 1.0},
                            {"ph", "X"},
                            {"cname", "background_memory_dump"},
                            {"args", json::object()}}));
  EXPECT_TRUE(marks[1]["tid"] == "worker:abcd" && marks[1]["ts"] == 1.7e15 - 1003)
      << "it never ran: its owner tells";
  EXPECT_EQ(marks[2]["ts"], 1.7e15 - 1005);
  EXPECT_EQ(events.size(), 6 * 4 + 3u) << "what never ran is no task of the timeline";
  EXPECT_EQ(submissions_of(timeline_of(batch, {.numbered = true}))[0]["args"]["task_id"],
            batch.events[0].task.hex());
}

json arrows_of(const json& events, const char* phase) {
  json found = json::array();
  for (const json& event : events) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

TEST(Timeline, AnArrowComesFromWhereATaskWasSubmitted) {
  TaskEventBatchData batch = batch_of({event_of(1, 2), event_of(1, 2), event_of(1, 2)});
  batch.strings.push_back(driver_worker_id(job_id_from_int(1)).binary() + "10.0.0.1");
  for (int i : {0, 1}) {
    batch.events[i].owner = 5;
    batch.events[i].created_us = batch.events[i].start_us - 700 - i;
  }
  EXPECT_EQ(arrows_of(timeline_of(batch), "s"), json::array()) << "not unless asked for";
  json events = timeline_of(batch, {.arrows = true});
  json from = arrows_of(events, "s"), to = arrows_of(events, "f");
  ASSERT_EQ(from.size(), 2u) << "who submitted the third is not known";
  ASSERT_EQ(to.size(), 2u);
  EXPECT_EQ(from[0]["pid"], "10.0.0.1");
  EXPECT_EQ(from[0]["tid"], "driver:" + driver_worker_id(job_id_from_int(1)).hex());
  EXPECT_EQ(from[0]["ts"], 1.7e15 - 700);
  EXPECT_EQ(to[0]["tid"], "worker:abcd");
  EXPECT_EQ(to[0]["ts"], 1.7e15);
  EXPECT_EQ(to[0]["bp"], "e");
  for (int i : {0, 1})
    EXPECT_TRUE(from[i]["id"] == to[i]["id"] && from[i]["cat"] == to[i]["cat"] &&
                from[i]["name"] == to[i]["name"]);
  EXPECT_NE(from[0]["id"], from[1]["id"]);
  // Viewers draw an arrow only between spans, so it has to begin at the span of the submission.
  json submitted = submissions_of(events);
  ASSERT_EQ(submitted.size(), 2u);
  EXPECT_TRUE(submitted[1]["ts"] == from[1]["ts"] && submitted[1]["tid"] == from[1]["tid"]);
}

TEST(Timeline, OneJobAndTheLastMinutes) {
  TaskEventBatchData batch = batch_of({event_of(1, 2), event_of(1, 2)});
  batch.events[1].task = make_task_id(9, job_id_from_int(2));
  EXPECT_EQ(timeline_of(batch, {.job = job_id_from_int(2)}).size(), 4u);
  EXPECT_EQ(timeline_of(batch, {.job = job_id_from_int(3)}), json::array());
  EXPECT_EQ(timeline_of(batch, {.since_us = batch.events[0].start_us + 240}).size(), 8u);
  EXPECT_EQ(timeline_of(batch, {.since_us = batch.events[0].start_us + 241}), json::array());
}

TEST(Timeline, NumberedProcessesAreNamedAtTheEnd) {
  TaskEventBatchData first = batch_of({event_of(1, 2, 3)}), second = first;
  second.worker_hex = "ef";
  second.is_driver = true;
  std::string text;
  Timeline trace({.numbered = true});
  trace.add(first, &text);
  trace.add(second, &text);
  trace.add(first, &text);
  trace.end(&text);
  json events = json::parse(text);
  ASSERT_EQ(events.size(), 12u);
  EXPECT_EQ(trace.shown(), 3);
  const json body = {{"cat", "task::f"},
                     {"name", "__main__.f"},
                     {"pid", 0},
                     {"tid", 1},
                     {"ts", 1.7e15},
                     {"dur", 240.0},
                     {"cname", "generic_work"},
                     {"ph", "X"},
                     {"args",
                      {{"name", "__main__.f"},
                       {"task_id", make_task_id(7, job_id_from_int(1)).hex()},
                       {"job_id", "01000000"},
                       {"attempt_number", 0},
                       {"func_or_class_name", "f"},
                       {"actor_id", nullptr}}}};
  EXPECT_EQ(events[3], body);
  EXPECT_EQ(events[5]["args"]["type"], "ValueError");
  EXPECT_EQ(events[5]["args"]["attempt_number"], 0);
  EXPECT_EQ(events[9], (json{{"ph", "M"},
                             {"name", "process_name"},
                             {"pid", 0},
                             {"tid", nullptr},
                             {"args", {{"name", "Node 10.0.0.7"}}}}));
  EXPECT_EQ(events[10], (json{{"ph", "M"},
                              {"name", "thread_name"},
                              {"pid", 0},
                              {"tid", 1},
                              {"args", {{"name", "driver:ef"}}}}));
  EXPECT_EQ(json::parse([] {
              std::string none;
              Timeline({.numbered = true}).end(&none);
              return none;
            }()),
            json::array());
}

TEST(Timeline, PiecesJoinToTheWholeAndAreBounded) {
  const TaskEventBatchData batch = batch_of(std::vector<TaskEvent>(200, event_of(1, 2)));
  std::string whole, joined;
  Timeline({.numbered = true}).add(batch, &whole);
  size_t largest = 0;
  EXPECT_TRUE(Timeline({.numbered = true}).add(batch, 10'000, [&](const std::string& piece) {
    largest = std::max(largest, piece.size());
    joined += piece;
    return true;
  }));
  EXPECT_EQ(joined, whole);
  EXPECT_LT(largest, 10'000 + whole.size() / 100);
  int taken = 0;
  EXPECT_FALSE(Timeline({.numbered = true}).add(batch, 10'000, [&](const std::string&) {
    return ++taken < 3;
  }));
  EXPECT_EQ(taken, 3);
}

}  // namespace
}  // namespace rt
