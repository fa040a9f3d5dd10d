// Queries over the tasks that live and the recorded tasks that have ended.
#include "observability/state/task_query.h"

#include <gtest/gtest.h>

#include "observability/events/task_texts.h"

namespace rt::state {
namespace {

class TaskQueryTest : public testing::Test {
 protected:
  TaskQuery query(const std::vector<Filter>& filters = {}, int64_t limit = 100) {
    TaskSelection selection;
    selection.filters = Filters::bind(*find_resource("tasks"), filters).value();
    selection.limit = limit;
    selection.actor_names[actor] = "mine";
    return TaskQuery(std::move(selection));
  }
  TaskId task(uint64_t n) const { return make_task_id(n, job_id_from_int(1)); }

  TaskEvent event(TaskId id, uint8_t kind = TaskEvent::kTask, uint32_t name = 1,
                  uint32_t function = 2, uint32_t error = 0) {
    TaskEvent event;
    event.task = id;
    event.name = name;
    event.function = function;
    event.error = error;
    event.kind = kind;
    event.start_us = ++clock * 1'000'000;
    event.execute_us = 2'000;
    return event;
  }
  TaskEventBatchData batch(std::vector<TaskEvent> events) {
    TaskEventBatchData batch;
    batch.node_hex = "aa";
    batch.worker_hex = "bb";
    batch.pid = 9;
    batch.strings = {"",
                     "__main__.f",
                     "f",
                     "m",
                     "A.m",
                     "__init__",
                     "A.__init__",
                     "ValueError\nboom\nTraceback",
                     "WORKER_DIED\nit died\n"};
    batch.events = std::move(events);
    return batch;
  }
  proto::TaskRecord live(TaskId id, proto::TaskRecord::State state) {
    proto::TaskRecord record;
    record.set_task_id(id.binary());
    record.set_name("f");
    record.set_function("f");
    record.set_state(state);
    return record;
  }
  static std::vector<std::string> column(const TaskQuery::Result& result, const char* name) {
    std::vector<std::string> values;
    for (const Json& row : result.rows)
      values.push_back(row[name].is_string() ? row[name].get<std::string>() : row[name].dump());
    return values;
  }

  ActorId actor = make_actor_id(job_id_from_int(1), 5, 6);
  int64_t clock = 1'700'000'000;
};

TEST_F(TaskQueryTest, WhatHasEndedIsARowOfEveryColumn) {
  TaskQuery q = query();
  q.add_history(batch({event(task(1)), event(task(2), TaskEvent::kTask, 1, 2, 7)}));
  TaskQuery::Result found = q.rows();
  ASSERT_EQ(found.rows.size(), 2u);
  for (const Column& c : find_resource("tasks")->columns)
    EXPECT_TRUE(found.rows[0].contains(c.name)) << c.name;
  EXPECT_EQ(column(found, "state"), (std::vector<std::string>{"FINISHED", "FAILED"}));
  EXPECT_EQ(column(found, "name"), (std::vector<std::string>{"f", "f"}));
  EXPECT_EQ(column(found, "error_type"),
            (std::vector<std::string>{"null", "TASK_EXECUTION_EXCEPTION"}));
  EXPECT_EQ(found.rows[0]["worker_pid"], 9);
  EXPECT_EQ(
      found.rows[0]["end_time_ms"].get<int64_t>() - found.rows[0]["start_time_ms"].get<int64_t>(),
      2);
}

TEST_F(TaskQueryTest, NamesOfMethodsAndConstructors) {
  TaskQuery q = query();
  q.add_history(batch({event(make_task_id(1, actor), TaskEvent::kActorCreation, 5, 6),
                       event(make_task_id(2, actor), TaskEvent::kActorMethod, 3, 4)}));
  TaskQuery::Result found = q.rows();
  std::vector<std::string> names = column(found, "name");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"A.m", "mine:A.__init__"}));
}

TEST_F(TaskQueryTest, OwnerAndExecutorAreMergedAndHistoryReplacesThem) {
  TaskQuery q = query();
  proto::TaskRecord owner = live(task(1), proto::TaskRecord::SUBMITTED_TO_WORKER);
  owner.set_parent_task_id(task(9).binary());
  owner.set_created_us(5'000);
  proto::TaskRecord executor = live(task(1), proto::TaskRecord::RUNNING);
  executor.set_pid(33);
  q.add_live(executor);
  q.add_live(owner);
  q.add_live(live(task(2), proto::TaskRecord::PENDING_ARGS_AVAIL));
  q.add_live(live(task(3), proto::TaskRecord::RUNNING));
  q.add_history(batch({event(task(3))}));
  TaskQuery::Result found = q.rows();
  EXPECT_EQ(found.total, 3);
  EXPECT_EQ(column(found, "state"),
            (std::vector<std::string>{"RUNNING", "PENDING_ARGS_AVAIL", "FINISHED"}));
  EXPECT_EQ(found.rows[0]["parent_task_id"], task(9).hex());
  EXPECT_EQ(found.rows[0]["creation_time_ms"], 5);
  EXPECT_EQ(found.rows[0]["worker_pid"], 33);
}

TEST_F(TaskQueryTest, WhatHasEndedKnowsItsParentAndOneParentNarrowsWhatIsRead) {
  TaskEventBatchData data = batch({event(task(2)), event(task(3))});
  proto::Resources asked;
  (*asked.mutable_units())["CPU"] = 5000;
  data.strings.insert(data.strings.end(), {task(1).binary(), asked.SerializeAsString()});
  data.events[0].parent = static_cast<uint32_t>(data.strings.size() - 2);
  data.events[0].resources = static_cast<uint32_t>(data.strings.size() - 1);
  data.events[0].created_us = data.events[0].start_us - 3000;
  TaskQuery q = query({{"parent_task_id", true, task(1).hex()}});
  EXPECT_TRUE(q.needs_events() && q.is_narrow());
  TaskDigest digest = unpack_task_digest(pack_task_digest(data)).value();
  EXPECT_TRUE(q.may_match(digest));
  EXPECT_FALSE(query({{"parent_task_id", true, task(9).hex()}}).may_match(digest));
  EXPECT_FALSE(query({{"task_id", true, task(9).hex()}}).may_match(digest));
  EXPECT_FALSE(query({{"task_id", false, task(2).hex()}}).is_narrow());
  q.add_history(data);
  TaskQuery::Result found = q.rows();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0]["required_resources"]["CPU"], 0.5);
  EXPECT_EQ(found.rows[0]["start_time_ms"].get<int64_t>() -
                found.rows[0]["creation_time_ms"].get<int64_t>(),
            3);
}

TEST_F(TaskQueryTest, FiltersApplyWhileReading) {
  TaskQuery q = query({{"state", true, "failed"}, {"name", false, "g"}});
  q.add_live(live(task(1), proto::TaskRecord::RUNNING));
  q.add_history(batch({event(task(2)), event(task(3), TaskEvent::kTask, 1, 2, 7)}));
  TaskQuery::Result found = q.rows();
  EXPECT_EQ(found.total, 1);
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0]["task_id"], task(3).hex());
}

TEST_F(TaskQueryTest, TheNewestAreKeptAndAllAreCounted) {
  TaskQuery q = query({}, 3);
  std::vector<TaskEvent> many;
  for (uint64_t n = 0; n < 1000; ++n) many.push_back(event(task(1000 - n)));
  q.add_history(batch(many));
  TaskQuery::Result found = q.rows();
  EXPECT_EQ(found.total, 1000);
  EXPECT_EQ(column(found, "task_id"),
            (std::vector<std::string>{task(1).hex(), task(2).hex(), task(3).hex()}));
}

TEST_F(TaskQueryTest, AFailureRecordedByTheOwnerOverridesTheExecutor) {
  for (bool owner_first : {true, false}) {
    TaskQuery q = query();
    TaskEventBatchData ran = batch({event(task(1))}),
                       failed = batch({event(task(1), TaskEvent::kOwnerFailedTask, 1, 2, 8)});
    q.add_history(owner_first ? failed : ran);
    q.add_history(owner_first ? ran : failed);
    TaskQuery::Result found = q.rows();
    ASSERT_EQ(found.rows.size(), 1u);
    EXPECT_EQ(found.rows[0]["state"], "FAILED");
    EXPECT_EQ(found.rows[0]["error_type"], "WORKER_DIED");
    EXPECT_EQ(found.rows[0]["worker_id"], "bb");
  }
}

TEST_F(TaskQueryTest, TheOwnerKnowsWhatProcessHadWhatFailed) {
  TaskEventBatchData failed = batch({event(task(1), TaskEvent::kOwnerFailedTask, 1, 2, 8),
                                     event(task(2), TaskEvent::kOwnerFailedTask, 1, 2, 8)});
  failed.events[0].owner = static_cast<uint32_t>(failed.strings.size());
  failed.strings.push_back(
      pack_event_process({std::string(WorkerId::kSize, 'w'), std::string(NodeId::kSize, 'n'), 77}));
  TaskQuery q = query();
  q.add_history(failed);
  TaskQuery::Result found = q.rows();
  EXPECT_EQ(column(found, "worker_pid"), (std::vector<std::string>{"77", "null"}));
  EXPECT_EQ(found.rows[0]["worker_id"], to_hex(std::string(WorkerId::kSize, 'w')));
  EXPECT_EQ(found.rows[0]["node_id"], to_hex(std::string(NodeId::kSize, 'n')));
  EXPECT_TRUE(found.rows[0]["task_log_info"].is_object());
  EXPECT_TRUE(found.rows[1]["task_log_info"].is_null());
  // A digest does not name the process, so filters on it make the batch itself necessary.
  auto digest = unpack_task_digest(pack_task_digest(failed));
  EXPECT_TRUE(query().can_count(*digest));
  EXPECT_FALSE(query({{"worker_pid", true, "77"}}).can_count(*digest));
  for (const char* column : {"node_id", "worker_id"})
    EXPECT_FALSE(query({{column, true, "aa"}}).can_count(*digest)) << column;
  EXPECT_TRUE(query({{"worker_pid", true, "77"}})
                  .can_count(*unpack_task_digest(pack_task_digest(batch({event(task(1))})))));
}

TEST_F(TaskQueryTest, OfALongErrorBothEndsAreKept) {
  TaskQuery q = query();
  TaskEventBatchData failed = batch({event(task(1), TaskEvent::kTask, 1, 2, 7)});
  failed.strings[7] = "ValueError\nboom\n" + std::string(5000, 'x') + " the end";
  q.add_history(failed);
  std::string message = q.rows().rows[0]["error_message"];
  EXPECT_LT(message.size(), 550u);
  EXPECT_TRUE(message.starts_with("boom\nxxx"));
  EXPECT_NE(message.find("[... 4513 bytes left out ...]"), message.npos) << message;
  EXPECT_TRUE(message.ends_with("x the end"));
}

TEST_F(TaskQueryTest, AttemptsAreRowsOfTheirOwn) {
  TaskQuery q = query({{"task_id", true, task(1).hex()}});
  TaskEvent second = event(task(1));
  second.attempt = 1;
  q.add_history(batch({event(task(1), TaskEvent::kTask, 1, 2, 7), second}));
  EXPECT_EQ(column(q.rows(), "attempt_number"), (std::vector<std::string>{"0", "1"}));
}

TEST_F(TaskQueryTest, SummariesCountByNameAndState) {
  TaskQuery q = query({}, 0);
  q.add_live(live(task(7), proto::TaskRecord::RUNNING));
  q.add_history(batch({event(task(1)), event(task(2)),
                       event(make_task_id(2, actor), TaskEvent::kActorMethod, 3, 4)}));
  Json summary = q.summary();
  EXPECT_EQ(summary["summary"]["f"]["state_counts"]["FINISHED"], 2);
  EXPECT_EQ(summary["summary"]["f"]["state_counts"]["RUNNING"], 1);
  EXPECT_EQ(summary["summary"]["A.m"]["type"], "ACTOR_TASK");
  EXPECT_EQ(summary["total_tasks"], 3);
  EXPECT_EQ(summary["total_actor_tasks"], 1);
}

// Counting a batch by its digest and reading it for its rows give the same result as reading the
// batch alone.
TEST_F(TaskQueryTest, ADigestCountsWhatTheBatchHolds) {
  TaskEvent retried = event(task(4), TaskEvent::kTask, 1, 2, 7);
  retried.attempt = 1;
  TaskEventBatchData data = batch({event(task(1)), event(task(2), TaskEvent::kTask, 1, 2, 7),
                                   event(task(3), TaskEvent::kOwnerFailedTask, 1, 2, 8), retried,
                                   event(make_task_id(5, actor), TaskEvent::kActorCreation, 5, 6),
                                   event(make_task_id(6, actor), TaskEvent::kActorMethod, 3, 4),
                                   event(task(7), TaskEvent::kSpan), event(task(8))});
  auto digest = unpack_task_digest(pack_task_digest(data));
  ASSERT_TRUE(digest) << digest.error().message;
  const std::vector<std::vector<Filter>> questions = {{},
                                                      {{"state", true, "failed"}},
                                                      {{"name", true, "f"}},
                                                      {{"type", false, "NORMAL_TASK"}},
                                                      {{"error_type", true, "WORKER_DIED"}},
                                                      {{"worker_pid", true, "9"}},
                                                      {{"worker_id", false, "bb"}},
                                                      {{"attempt_number", true, "1"}},
                                                      {{"name", true, "mine:A.__init__"}},
                                                      {{"actor_id", true, actor.hex()}},
                                                      {{"job_id", true, job_id_from_int(1).hex()}},
                                                      {{"job_id", true, job_id_from_int(2).hex()}}};
  for (const auto& filters : questions) {
    TaskQuery whole = query(filters), counted = query(filters);
    whole.add_history(data);
    ASSERT_FALSE(counted.needs_events());
    int64_t matching = counted.count(*digest);
    counted.take_rows(data);
    auto expected = whole.rows(), got = counted.rows();
    EXPECT_EQ(expected.rows, got.rows) << filters.size();
    EXPECT_EQ(expected.total, got.total);
    EXPECT_EQ(matching, expected.total);
    EXPECT_EQ(whole.summary(), counted.summary());
  }
  EXPECT_TRUE(query({{"task_id", true, task(1).hex()}}).needs_events());
}

TEST_F(TaskQueryTest, OlderRowsAreWantedWhileThereIsPlaceForThem) {
  TaskQuery q = query({}, 2);
  EXPECT_TRUE(q.may_keep_rows_ending_by(0));
  TaskEvent first = event(task(1)), second = event(task(2));
  q.add_history(batch({first, second}));
  EXPECT_FALSE(q.may_keep_rows_ending_by(first.start_us - 1));
  EXPECT_TRUE(q.may_keep_rows_ending_by(second.start_us));
  EXPECT_FALSE(query({}, 0).may_keep_rows_ending_by(second.start_us));
}

TEST_F(TaskQueryTest, LiveTasksAreReadOnlyIfTheFilterMatches) {
  for (const char* state : {"RUNNING", "FINISHED"}) {
    TaskQuery q = query({{"state", true, state}});
    EXPECT_FALSE(q.any_live_task_matches());
    q.add_live(live(task(1), proto::TaskRecord::RUNNING));
    EXPECT_EQ(q.any_live_task_matches(), state == std::string("RUNNING"));
  }
}

TEST_F(TaskQueryTest, DriversAreTasks) {
  proto::JobInfo job;
  job.set_job_id(job_id_from_int(3).binary());
  job.mutable_config()->set_entrypoint("python prog.py");
  job.set_driver_pid(17);
  job.set_start_time_ms(5);
  TaskQuery q = query({{"type", true, "DRIVER_TASK"}});
  q.add_driver(job);
  auto found = q.rows();
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0]["task_id"], driver_task_id(job_id_from_int(3)).hex());
  EXPECT_EQ(found.rows[0]["name"], "python prog.py");
  EXPECT_EQ(found.rows[0]["state"], "RUNNING");
}

TEST_F(TaskQueryTest, ThePlacementGroupIsKnownOfLivingAndOfEndedTasks) {
  const std::string group(GroupId::kSize, 'g');
  TaskEventBatchData data = batch({event(task(2)), event(task(3)), event(task(4))});
  data.strings.push_back(group);
  data.strings.push_back("TASK_PLACEMENT_GROUP_REMOVED\nPlacement group gg was removed\n");
  data.events[0].placement_group = data.events[1].placement_group =
      static_cast<uint32_t>(data.strings.size() - 2);
  data.events[1].error = static_cast<uint32_t>(data.strings.size() - 1);
  proto::TaskRecord living = live(task(1), proto::TaskRecord::RUNNING);
  living.set_group_id(group);
  TaskQuery all = query();
  all.add_live(living);
  all.add_history(data);
  const std::string hex = to_hex(group);
  TaskQuery::Result found = all.rows();
  EXPECT_EQ(column(found, "placement_group_id"), (std::vector<std::string>{hex, hex, hex, "null"}));
  EXPECT_EQ(column(found, "error_type"),
            (std::vector<std::string>{"null", "null", "TASK_PLACEMENT_GROUP_REMOVED", "null"}));
  // The digest is enough to count the tasks of a group.
  TaskQuery narrow = query({{"placement_group_id", true, hex}});
  EXPECT_FALSE(narrow.needs_events());
  EXPECT_EQ(narrow.count(unpack_task_digest(pack_task_digest(data)).value()), 2);
}

TEST_F(TaskQueryTest, TheTextsOfATemplateAreKnownOfLivingAndOfEndedTasks) {
  proto::TaskTemplate spec;
  TaskEventBatchData data = batch({event(task(2)), event(task(3))});
  for (const TaskText& text : kTaskTexts) {
    const std::string value = fmt::format("its {}", text.column);
    spec.GetReflection()->SetString(&spec, spec.GetDescriptor()->FindFieldByName(text.column),
                                    value);
    data.events[0].*text.in_event = static_cast<uint32_t>(data.strings.size());
    data.strings.push_back(value);
  }
  proto::TaskRecord living = live(task(1), proto::TaskRecord::RUNNING);
  describe(spec, &living);
  TaskQuery q = query();
  q.add_live(living);
  q.add_history(data);
  const TaskQuery::Result found = q.rows();
  for (const TaskText& text : kTaskTexts) {
    const std::string value = fmt::format("its {}", text.column);
    EXPECT_EQ(column(found, text.column), (std::vector<std::string>{value, value, "null"}));
    EXPECT_GE(find_resource("tasks")->column(text.column), 0) << text.column;
  }
}

// A reader that is content with digests finds what it would find in the events. So a new column
// that can be filtered by is either counted from digests, or makes the reader look at the events.
TEST_F(TaskQueryTest, ADigestIsNotAskedForWhatItLacks) {
  TaskEventBatchData data = batch({event(make_task_id(2, actor), TaskEvent::kActorMethod)});
  for (auto text : kCommonTexts) {
    data.events[0].*text = static_cast<uint32_t>(data.strings.size());
    data.strings.push_back(fmt::format("{:->{}}", data.strings.size(), TaskId::kSize));
  }
  const TaskDigest digest = unpack_task_digest(pack_task_digest(data)).value();
  TaskQuery all = query();
  all.add_history(data);
  const Json row = all.rows().rows.at(0);
  for (const Column& column : find_resource("tasks")->columns) {
    if (!column.filterable || row[column.name].is_null()) continue;
    const Json& value = row[column.name];
    TaskQuery q =
        query({{column.name, true, value.is_string() ? value.get<std::string>() : value.dump()}});
    if (!q.needs_events()) EXPECT_EQ(q.count(digest), 1) << column.name;
  }
}

TEST_F(TaskQueryTest, ForgedIndexesAreSkipped) {
  TaskQuery q = query();
  q.add_history(batch({event(task(1), TaskEvent::kTask, 99, 2),
                       event(task(2), TaskEvent::kTask, 1, 2, 99), event(task(3))}));
  EXPECT_EQ(q.rows().rows.size(), 1u);
}

}  // namespace
}  // namespace rt::state
