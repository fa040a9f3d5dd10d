// The columns of the state API and the filters on them.
#include "observability/state/filter.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/ids.h"
#include "observability/state/rows.h"

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
  proto::GetSnapshotReply jobs;
  jobs.mutable_drivers()->add_jobs()->set_job_id("\x01\0\0\0");
  proto::SubmittedJob& pending = *jobs.mutable_submitted_jobs()->add_jobs();
  pending.set_submission_id("raysubmit_1");
  pending.set_status("PENDING");
  for (const Json& row : job_rows(jobs)) {
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

// A driver that was started by the submitted job, if that is given.
proto::JobInfo& add_driver(proto::GetSnapshotReply* jobs, int number,
                           const std::string& submission = "", bool finished = false) {
  proto::JobInfo& driver = *jobs->mutable_drivers()->add_jobs();
  driver.set_job_id(job_id_from_int(number).binary());
  driver.mutable_config()->set_submission_id(submission);
  driver.set_driver_pid(number);
  driver.set_finished(finished);
  return driver;
}

proto::SubmittedJob& add_submitted(proto::GetSnapshotReply* jobs, const std::string& id,
                                   int driver = 0) {
  proto::SubmittedJob& job = *jobs->mutable_submitted_jobs()->add_jobs();
  job.set_submission_id(id);
  if (driver > 0) job.set_job_id(job_id_from_int(driver).binary());
  return job;
}

// Returns "SUBMISSION 02000000 by 2, DRIVER 01000000 by 1": the type, the job id, and the driver's
// process.
std::string brief(const std::vector<Json>& rows) {
  std::string text;
  for (const Json& row : rows)
    text += fmt::format(
        "{}{} {} by {}", text.empty() ? "" : ", ", row["type"].get<std::string>(),
        row["job_id"].is_null() ? "-" : row["job_id"].get<std::string>(),
        row["driver_info"].is_null() ? "-" : row["driver_info"]["pid"].get<std::string>());
  return text;
}

TEST(Rows, ASubmittedJobAndItsDriverAreOne) {
  proto::GetSnapshotReply jobs;
  add_submitted(&jobs, "s");
  EXPECT_EQ(brief(job_rows(jobs)), "SUBMISSION - by -");
  // The registration of the driver is not on disk yet.
  add_driver(&jobs, 1, "s");
  add_driver(&jobs, 2);
  EXPECT_EQ(brief(job_rows(jobs)), "SUBMISSION 01000000 by 1, DRIVER 02000000 by 2");
  jobs.mutable_submitted_jobs()->mutable_jobs(0)->set_job_id(job_id_from_int(1).binary());
  EXPECT_EQ(brief(job_rows(jobs)), "SUBMISSION 01000000 by 1, DRIVER 02000000 by 2");
}

TEST(Rows, EachOfSeveralDriversOfASubmittedJobIsThereOnce) {
  proto::GetSnapshotReply jobs;
  add_driver(&jobs, 1, "s", true);
  add_driver(&jobs, 2, "s", true);
  add_driver(&jobs, 3, "s");
  add_submitted(&jobs, "s", 2);
  EXPECT_EQ(brief(job_rows(jobs)),
            "SUBMISSION 02000000 by 2, DRIVER 01000000 by 1, DRIVER 03000000 by 3");
  // The head has forgotten the record of the last one.
  jobs.mutable_submitted_jobs()->mutable_jobs(0)->set_job_id(job_id_from_int(4).binary());
  EXPECT_EQ(brief(job_rows(jobs)),
            "SUBMISSION 04000000 by -, DRIVER 01000000 by 1, DRIVER 02000000 by 2, "
            "DRIVER 03000000 by 3");
}

TEST(Rows, ADriverThatOutlivesTheRecordOfItsSubmittedJobIsShown) {
  proto::GetSnapshotReply jobs;
  add_driver(&jobs, 1, "deleted", true);
  add_driver(&jobs, 2, "deleted");
  EXPECT_EQ(brief(job_rows(jobs)), "DRIVER 02000000 by 2");
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
