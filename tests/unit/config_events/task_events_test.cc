#include "common/events/task_digest.h"

#include <gtest/gtest.h>

#include <tuple>
#include <zstd.h>

#include <nlohmann/json.hpp>

namespace rt {
namespace {

using nlohmann::json;

TaskEvent event_of(uint32_t name, uint32_t function, uint32_t error = 0, uint8_t kind = 0) {
  TaskEvent event;
  event.task = make_task_id(7, job_id_from_int(1));
  event.name = name;
  event.function = function;
  event.error = error;
  event.start_us = 1'700'000'000'000'000;
  event.deserialize_us = 10;
  event.execute_us = 200;
  event.store_us = 30;
  event.kind = kind;
  return event;
}

TaskEventBatchData batch_of(std::vector<TaskEvent> events) {
  TaskEventBatchData batch;
  batch.node_ip = "10.0.0.7";
  batch.worker_hex = "abcd";
  batch.strings = {"", "__main__.f", "f", "ValueError\nboom\nTraceback:\n  line 1", "bad \xff\"name"};
  batch.events = std::move(events);
  return batch;
}

json timeline_of(const TaskEventBatchData& batch) {
  std::string text;
  append_timeline(batch, &text);
  return json::parse("[" + text + "]");
}

TEST(TaskEvents, ABatchSurvivesTheWay) {
  TaskEventBatchData batch = batch_of({event_of(1, 2), event_of(1, 2, 3, 1)});
  batch.events[1].attempt = 4;
  batch.is_driver = batch.is_cpp = true;
  batch.node_hex = "ef01";
  batch.pid = 4711;
  auto unpacked = unpack_task_events(pack_task_events(batch));
  ASSERT_TRUE(unpacked);
  EXPECT_EQ(unpacked->node_ip, "10.0.0.7");
  EXPECT_EQ(unpacked->worker_hex, "abcd");
  EXPECT_TRUE(unpacked->is_driver && unpacked->is_cpp);
  EXPECT_EQ(unpacked->node_hex, "ef01");
  EXPECT_EQ(unpacked->pid, 4711u);
  EXPECT_EQ(unpacked->strings, batch.strings);
  ASSERT_EQ(unpacked->events.size(), 2u);
  EXPECT_EQ(unpacked->events[0].task, batch.events[0].task);
  EXPECT_EQ(unpacked->events[1].attempt, 4u);
  EXPECT_EQ(unpacked->events[1].error, 3u);
  EXPECT_EQ(unpacked->events[1].kind, 1);
  EXPECT_EQ(unpacked->events[1].start_us, batch.events[1].start_us);
}

TEST(TaskEvents, WhatOnlyItsOwnerSawFailIsNotInTheTrace) {
  EXPECT_TRUE(timeline_of(batch_of({event_of(1, 2, 3, TaskEvent::kOwnerFailedTask), event_of(1, 2, 3, TaskEvent::kOwnerFailedMethod)})).empty());
}

TEST(TaskEvents, WhoSubmittedItWhenAndWhatForIsKept) {
  TaskEventBatchData batch = batch_of({event_of(1, 2)});
  batch.events[0].parent = batch.events[0].resources = batch.events[0].call_site = 3;
  batch.events[0].created_us = 1'700'000'000'000'000;
  auto unpacked = unpack_task_events(pack_task_events(batch));
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  const TaskEvent& event = unpacked->events[0];
  EXPECT_EQ(std::tie(event.parent, event.resources, event.call_site), std::tuple(3u, 3u, 3u));
  EXPECT_EQ(event.created_us, batch.events[0].created_us);
  batch.events[0].parent = 1000;
  EXPECT_FALSE(unpack_task_events(pack_task_events(batch)));
}

TEST(TaskEvents, ManyEventsPackSmall) {
  TaskEventBatchData batch = batch_of({});
  for (int i = 0; i < 10'000; ++i) {
    batch.events.push_back(event_of(1, 2));
    batch.events.back().start_us += i * 257;
  }
  EXPECT_LT(pack_task_events(batch).size(), 10'000u * 20);
}

TEST(TaskEvents, AnythingElseIsRefused) {
  std::string packed = pack_task_events(batch_of({event_of(1, 2)}));
  EXPECT_FALSE(unpack_task_events(""));
  EXPECT_FALSE(unpack_task_events("not zstd at all"));
  EXPECT_FALSE(unpack_task_events(packed.substr(0, packed.size() / 2)));
  auto compressed = [](std::string_view raw) {
    std::string out(ZSTD_compressBound(raw.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), 1));
    return out;
  };
  EXPECT_FALSE(unpack_task_events(compressed("\2\0\0\0")));
  EXPECT_FALSE(unpack_task_events(compressed(std::string("\1\0\0\0\xff\xff\xff\xff", 8))));
  EXPECT_FALSE(unpack_task_events(compressed(std::string(300u << 20, '\0'))));   // a bomb
  EXPECT_FALSE(unpack_task_events(pack_task_events(batch_of({event_of(99, 2)}))));
  auto intact = unpack_task_events(packed);
  EXPECT_TRUE(intact);
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
  EXPECT_EQ(events[2]["args"], (json{{"type", "ValueError"}, {"value", "boom"}, {"traceback", "Traceback:\n  line 1"}}));
}

TEST(Timeline, AFailedConstructorNamesItsCategory) {
  json events = timeline_of(batch_of({event_of(1, 2, 3, 1)}));
  EXPECT_EQ(events[0]["name"], "task::f");
  EXPECT_EQ(events[0]["args"]["type"], "ValueError");
}

TEST(Timeline, SubmissionsAndBadTextStayValidJson) {
  TaskEventBatchData batch = batch_of({event_of(4, 4), event_of(1, 2, 0, 3)});
  batch.is_driver = true;
  json events = timeline_of(batch);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[4]["cat"], "submit_task");
  EXPECT_EQ(events[4]["tid"], "driver:abcd");
  EXPECT_EQ(events[4]["cname"], "background_memory_dump");
}

TEST(TaskDigest, GroupsWhatIsAlike) {
  TaskEventBatchData batch = batch_of({event_of(1, 2), event_of(1, 2), event_of(1, 2, 3), event_of(1, 2)});
  auto digest = unpack_task_digest(pack_task_digest(batch));
  ASSERT_TRUE(digest) << digest.error().message;
  ASSERT_EQ(digest->groups.size(), 2u);
  EXPECT_EQ(digest->groups[0].events, 3u);
  EXPECT_EQ(digest->strings[digest->groups[0].name], "__main__.f");
  EXPECT_EQ(digest->strings[digest->groups[1].error], "ValueError");
  EXPECT_EQ(digest->worker_hex, "abcd");
  EXPECT_EQ(digest->groups[0].job, job_id_from_int(1));
}

TEST(TaskDigest, KnowsWhichTasksAndParentsItMayHave) {
  const JobId job = job_id_from_int(1);
  TaskEventBatchData batch = batch_of({});
  batch.strings.push_back(make_task_id(77, job).binary());
  for (uint64_t number : {1'000'000u, 1'000'016u, 1'000'032u, 9'000'000u}) {
    batch.events.push_back(event_of(1, 2));
    batch.events.back().task = make_task_id(number, job);
    batch.events.back().parent = static_cast<uint32_t>(batch.strings.size() - 1);
  }
  auto digest = unpack_task_digest(pack_task_digest(batch));
  ASSERT_TRUE(digest) << digest.error().message;
  EXPECT_EQ(digest->tasks.size(), 2u);
  for (const TaskEvent& event : batch.events) EXPECT_TRUE(digest->may_have_task(event.task));
  EXPECT_FALSE(digest->may_have_task(make_task_id(999'999, job)));
  EXPECT_FALSE(digest->may_have_task(make_task_id(5'000'000, job)));
  EXPECT_TRUE(digest->may_have_child_of(make_task_id(77, job)));
  EXPECT_FALSE(digest->may_have_child_of(make_task_id(78, job)));
  // Ids without any order: whoever looks for one has to read the batch.
  for (uint64_t i = 1; i < 1000; ++i) {
    batch.events.push_back(event_of(1, 2));
    batch.events.back().task = make_task_id(i * 0x9e3779b97f4a7c15ull, job);
  }
  digest = unpack_task_digest(pack_task_digest(batch));
  ASSERT_TRUE(digest);
  EXPECT_TRUE(digest->tasks.empty() && digest->may_have_task(make_task_id(5'000'000, job)));
}

TEST(TaskDigest, OfTooManyGroupsThereIsNone) {
  TaskEventBatchData batch = batch_of({});
  for (int i = 0; i < 1000; ++i) {
    batch.strings.push_back("name " + std::to_string(i));
    batch.events.push_back(event_of(static_cast<uint32_t>(batch.strings.size() - 1), 2));
  }
  EXPECT_EQ(pack_task_digest(batch), "");
}

TEST(TaskDigest, WhatIsNoDigestIsRefused) {
  std::string good = pack_task_digest(batch_of({event_of(1, 2), event_of(1, 2, 3)}));
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(unpack_task_digest(good.substr(0, size))) << size;
  std::string forged = good;
  constexpr size_t kRanges = 24;             // of one task and no parent
  forged[forged.size() - kRanges - 10] = '\x7f';      // the last group's error
  EXPECT_FALSE(unpack_task_digest(forged));
}

}  // namespace
}  // namespace rt
