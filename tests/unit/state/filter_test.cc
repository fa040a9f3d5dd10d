// The columns of the state API and the filters on them.
#include "common/state/filter.h"

#include <gtest/gtest.h>

#include "common/state/rows.h"

namespace rt::state {
namespace {

bool matches(const std::string& resource, const std::vector<Filter>& filters, const Json& row) {
  const Resource& r = *find_resource(resource);
  auto bound = Filters::bind(r, filters);
  EXPECT_TRUE(bound);
  return bound && bound->match([&](int column) { return field_of(row, r, column); });
}

TEST(Filters, TextsCompareWithoutCaseNumbersAndBooleansAreConverted) {
  Json actor = {{"state", "ALIVE"}, {"pid", 17}};
  EXPECT_TRUE(matches("actors", {{"state", true, "alive"}}, actor));
  EXPECT_FALSE(matches("actors", {{"state", false, "Alive"}}, actor));
  EXPECT_TRUE(matches("actors", {{"pid", true, "17"}}, actor));
  EXPECT_FALSE(matches("actors", {{"pid", true, "170"}}, actor));
  EXPECT_TRUE(matches("nodes", {{"is_head_node", true, "True"}}, {{"is_head_node", true}}));
  EXPECT_FALSE(matches("nodes", {{"is_head_node", true, "0"}}, {{"is_head_node", true}}));
}

TEST(Filters, AllMustHoldAndWhatIsAbsentEqualsNothing) {
  Json actor = {{"state", "ALIVE"}, {"name", nullptr}};
  EXPECT_FALSE(matches("actors", {{"state", true, "ALIVE"}, {"state", true, "DEAD"}}, actor));
  EXPECT_FALSE(matches("actors", {{"name", true, ""}}, actor));
  EXPECT_TRUE(matches("actors", {{"name", false, "x"}}, actor));
}

TEST(Filters, WrongOnesSayWhatIsPossible) {
  auto colour = Filters::bind(*find_resource("nodes"), {{"colour", true, "x"}});
  ASSERT_FALSE(colour);
  EXPECT_NE(colour.error().message.find("Supported filter columns: node_id, node_ip"),
            std::string::npos);
  EXPECT_FALSE(Filters::bind(*find_resource("actors"),
                             {{"is_detached", true, "true"}}));  // A column without filters.
  EXPECT_FALSE(Filters::bind(*find_resource("actors"), {{"pid", true, "x"}}));
  EXPECT_FALSE(Filters::bind(*find_resource("actors"), {{"pid", true, "99999999999999999999"}}));
  EXPECT_FALSE(Filters::bind(*find_resource("nodes"), {{"is_head_node", true, "perhaps"}}));
}

TEST(Filters, ValuesOfAColumnOfStatesAreKnown) {
  const Resource& tasks = *find_resource("tasks");
  EXPECT_TRUE(Filters::check_values(
      tasks,
      {{"state", true, "running"}, {"name", true, "whatever"}, {"type", false, "Actor_Task"}}));
  auto wrong = Filters::check_values(tasks, {{"state", true, "runing"}});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with(
      "the state of tasks is never 'runing': it is one of NIL, PENDING_ARGS_AVAIL, "))
      << wrong.error().message;
  EXPECT_TRUE(Filters::bind(tasks, {{"state", true, "runing"}})) << "programs get no rows";
  for (int state = proto::TaskRecord::State_MIN; state <= proto::TaskRecord::State_MAX; ++state) {
    EXPECT_TRUE(Filters::check_values(
        tasks, {{"state", true, task_state_name(static_cast<proto::TaskRecord::State>(state))}}));
  }
}

TEST(Rows, DetailColumnsComeOnlyWhenWanted) {
  const Resource& nodes = *find_resource("nodes");
  Json row = node_row(proto::Node());
  EXPECT_FALSE(shown(row, nodes, false).contains("start_time_ms"));
  EXPECT_TRUE(shown(row, nodes, true).contains("start_time_ms"));
  EXPECT_EQ(shown(row, nodes, true).size(), nodes.columns.size());
}

TEST(Rows, HaveEveryColumn) {
  proto::GetJobsReply drivers;
  drivers.add_jobs()->set_job_id("\x01\0\0\0");
  proto::SubmittedJobsReply submitted;
  submitted.add_jobs()->set_submission_id("raysubmit_1");
  submitted.mutable_jobs(0)->set_status("PENDING");
  for (const Json& row : job_rows(drivers, submitted)) {
    for (const Column& column : find_resource("jobs")->columns)
      EXPECT_TRUE(row.contains(column.name)) << column.name;
  }
  std::vector<std::pair<std::string, Json>> rows = {{"actors", actor_row({})},
                                                    {"nodes", node_row({})},
                                                    {"workers", worker_row({}, {})},
                                                    {"objects", object_row({}, {})}};
  for (const auto& [resource, row] : rows) {
    for (const Column& column : find_resource(resource)->columns)
      EXPECT_TRUE(row.contains(column.name)) << resource << "." << column.name;
  }
}

TEST(Rows, ASubmittedJobAndItsDriverAreOne) {
  proto::GetJobsReply drivers;
  proto::JobInfo* driver = drivers.add_jobs();
  driver->set_job_id(std::string("\x01\0\0\0", 4));
  driver->mutable_config()->set_submission_id("s");
  driver->set_driver_pid(12);
  *drivers.add_jobs() = proto::JobInfo();
  proto::SubmittedJobsReply submitted;
  submitted.add_jobs()->set_submission_id("s");
  std::vector<Json> rows = job_rows(drivers, submitted);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["type"], "SUBMISSION");
  EXPECT_EQ(rows[0]["driver_info"]["pid"], "12");
  EXPECT_EQ(rows[1]["type"], "DRIVER");
}

TEST(Rows, KindsOfReferences) {
  proto::ObjectRecords process;
  proto::ObjectRecord object;
  auto kind = [&] { return object_row(object, process)["reference_type"].get<std::string>(); };
  EXPECT_EQ(kind(), "UNKNOWN_STATUS");
  object.set_in_store(true);
  EXPECT_EQ(kind(), "PINNED_IN_MEMORY");
  object.set_local_refs(1);
  EXPECT_EQ(kind(), "LOCAL_REFERENCE");
  object.set_contained(true);
  EXPECT_EQ(kind(), "CAPTURED_IN_OBJECT");
  object.set_local_refs(2);
  EXPECT_EQ(kind(), "LOCAL_REFERENCE");
  object.set_pending_uses(1);
  EXPECT_EQ(kind(), "USED_BY_PENDING_TASK");
  object.set_is_actor(true);
  EXPECT_EQ(kind(), "ACTOR_HANDLE");
}

}  // namespace
}  // namespace rt::state
