// Jobs in the head's core: drivers, and submitted jobs with their entrypoints.
#include <nlohmann/json.hpp>

#include "tests/unit/head/core_fixture.h"

namespace rt::head {
namespace {

class JobsTest : public HeadTest {
 protected:
  Answer<proto::SubmitJobReply> submit(const std::string& id,
                                       const std::string& command = "python p.py",
                                       const std::map<std::string, double>& needs = {}) {
    proto::SubmitJobRequest request;
    request.set_submission_id(id);
    request.set_entrypoint(command);
    (*request.mutable_metadata())["team"] = "x";
    set_resources(request.mutable_entrypoint_resources(), needs);
    Answer<proto::SubmitJobReply> answer;
    core->submit_job(request, now, answer.reply());
    commit();
    core->check_invariants(now);
    return answer;
  }
  std::string status(const std::string& id) { return core->view().submitted_job(id)->status(); }
  Status report_job(int node, const std::string& id, const std::string& status, int exit_code = 0) {
    proto::SubmittedJob report;
    report.set_submission_id(id);
    if (const auto known = core->view().submitted_job(id))
      report.set_start_time_ms(known->start_time_ms());
    report.set_status(status);
    report.set_exit_code(exit_code);
    return report_job(node, report);
  }
  Status report_job(int node, const proto::SubmittedJob& report) {
    Answer<proto::Empty> answer;
    core->report_submitted_job(conn_of(node), report, now, answer.reply());
    commit();
    EXPECT_TRUE(answer.answered());
    return answer.ok() ? Status() : Status(answer.error());
  }
  Answer<proto::StopJobReply> stop(const std::string& id) {
    Answer<proto::StopJobReply> answer;
    core->stop_submitted_job(id, now, answer.reply());
    commit();
    return answer;
  }
};

TEST_F(JobsTest, IdsCountFromOneAndAreAnsweredWhenDurable) {
  add_node(1, {});
  Answer<proto::AddJobReply> answer;
  core->add_job(job_request(1), now, answer.reply());
  EXPECT_FALSE(answer.answered());
  commit();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(to_hex(answer->job_id()), "01000000");
  EXPECT_EQ(answer->ray_namespace().size(), 36u);
  EXPECT_EQ(answer->session_name(), "session_test");
  EXPECT_EQ(add_job(), job_id_from_int(2));
  EXPECT_EQ(core->view().get_jobs().jobs(1).driver_worker_id(),
            driver_worker_id(job_id_from_int(2)).binary());
}

TEST_F(JobsTest, AFullDiskRefusesTheJob) {
  add_node(1, {});
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  Answer<proto::AddJobReply> answer;
  core->add_job(job_request(1), now, answer.reply());
  commit();
  EXPECT_EQ(answer.error().code, Code::kOutOfDisk);
  EXPECT_EQ(core->view().get_jobs().jobs_size(), 0);
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_TRUE(disk.tables["jobs"].empty());
  add_job();
}

TEST_F(JobsTest, BadRequestsAreRefused) {
  add_node(1, {});
  auto add = [&](auto change) {
    auto request = job_request(1);
    change(request);
    Answer<proto::AddJobReply> answer;
    core->add_job(request, now, answer.reply());
    return answer.error().code;
  };
  EXPECT_EQ(add([](auto& r) { r.set_node_id("x"); }), Code::kInvalid);
  EXPECT_EQ(add([](auto& r) { r.set_node_id(node_id(9).binary()); }), Code::kNotFound);
  EXPECT_EQ(add([](auto& r) { r.set_worker_id("x"); }), Code::kInvalid);
  proto::FinishJobRequest finish;
  finish.set_job_id("toolong");
  EXPECT_EQ(core->finish_job(finish, now).error().code, Code::kInvalid);
  finish.set_job_id(job_id_from_int(7).binary());
  EXPECT_EQ(core->finish_job(finish, now).error().code, Code::kNotFound);
}

TEST_F(JobsTest, AJobEndsWithItsNode) {
  add_node(1, {});
  add_node(2, {});
  JobId job = add_job(2);
  lose_node(2);
  auto push = take(sink.pushes);
  EXPECT_EQ(push.conn, conn_of(1));
  EXPECT_EQ(push.event.finished_jobs(0), job.binary());
  EXPECT_TRUE(core->view().get_jobs().jobs(0).finished());
}

TEST_F(JobsTest, AJobThatHasEndedHasEndedForTheNextHead) {
  add_node(1, {});
  const JobId job = add_job(1);
  finish_job(job);
  sink.pushes.clear();
  restart();
  EXPECT_FALSE(core->view().jobs().running(job));
  EXPECT_TRUE(core->view().get_jobs().jobs(0).finished());
}

TEST_F(JobsTest, NodesThatWereAwayLearnWhatEnded) {
  add_node(1, {});
  add_node(2, {});
  JobId job = add_job(1), driver_there = add_job(2);
  advance_alive(5000, {1, 2});
  core->connection_closed(conn_of(2), now);
  finish_job(job);
  EXPECT_EQ(take(sink.pushes).conn, conn_of(1));
  advance(500);
  // The node lists no live job, so its own driver has ended.
  register_node(302, registration(2, {}));
  drop_node_pushes();
  std::set<std::string> told;
  while (!sink.pushes.empty()) {
    auto push = take(sink.pushes);
    if (push.conn == 302u)
      told.insert(push.event.finished_jobs().begin(), push.event.finished_jobs().end());
  }
  EXPECT_EQ(told, (std::set<std::string>{job.binary(), driver_there.binary()}));
}

TEST_F(JobsTest, NodesThatWereAwayLearnWhoseObjectsGo) {
  add_node(1, {{"CPU", 2}});
  add_node(2, {});
  const JobId job = add_job(1);
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->set_detached(true);
  const ActorId actor = alive_actor(request, 1);
  finish_job(job);
  advance_alive(5000, {1, 2});
  // The node may not have received this, although it was sent before the node was lost.
  proto::DeadWorkers report;
  report.add_worker_ids(worker_id(77).binary());
  EXPECT_TRUE(core->dead_workers(conn_of(1), report, now));
  core->connection_closed(conn_of(2), now);
  EXPECT_TRUE(died(1, actor, 1, proto::ExitInfo::SIGNALED));
  advance(500);
  auto told_at_return = [&] {
    sink.pushes.clear();
    EXPECT_TRUE(register_node(conn_of(2), registration(2, {})).ok());
    proto::HeadEvent told;
    for (const auto& push : sink.pushes) {
      if (push.conn == conn_of(2)) told.MergeFrom(push.event);
    }
    sink.pushes.clear();
    return told;
  };
  proto::HeadEvent told = told_at_return();
  ASSERT_EQ(told.dead_workers_size(), 1);
  EXPECT_EQ(told.dead_workers(0), worker_id(77).binary());
  ASSERT_EQ(told.over_jobs_size(), 1);
  EXPECT_EQ(told.over_jobs(0), job.binary());

  // A node that was heard of since then knows it.
  advance_alive(2 * options.settings.node_timeout_ms + 3000, {1, 2});
  report.set_worker_ids(0, worker_id(78).binary());
  EXPECT_TRUE(core->dead_workers(conn_of(1), report, now));
  core->connection_closed(conn_of(2), now);
  told = told_at_return();
  ASSERT_EQ(told.dead_workers_size(), 1);
  EXPECT_EQ(told.dead_workers(0), worker_id(78).binary());
}

TEST_F(JobsTest, LogsReachTheDriverOfTheJobOnly) {
  add_node(1, {});
  JobId job = add_job();
  proto::SubscribeRequest mine, errors;
  mine.set_logs_of_job(job.binary());
  errors.set_errors(true);
  ASSERT_TRUE(core->subscribe(7, mine, now));
  ASSERT_TRUE(core->subscribe(8, errors, now));
  proto::HeadEvent event;
  auto add = [&](JobId of) {
    auto* lines = event.add_logs();
    lines->set_job_id(of.binary());
    lines->add_lines("hello");
  };
  add(job);
  add(job_id_from_int(99));
  event.add_notices()->set_text("for all");
  EXPECT_TRUE(core->publish_logs(conn_of(1), event));
  auto to_driver = take(sink.pushes), to_other = take(sink.pushes);
  EXPECT_EQ(to_driver.conn, 7u);
  EXPECT_EQ(to_driver.event.logs_size(), 1);
  EXPECT_EQ(to_driver.event.notices_size(), 0);
  EXPECT_EQ(to_other.conn, 8u);
  EXPECT_EQ(to_other.event.logs_size(), 0);
  EXPECT_EQ(to_other.event.notices_size(), 1);
  EXPECT_EQ(core->publish_logs(77, event).error().code, Code::kNotFound);
}

TEST_F(JobsTest, ASubmittedJobsLife) {
  add_node(2, {});
  add_node(1, {});  // This is the head's own node.
  auto answer = submit("");
  ASSERT_TRUE(answer.ok());
  std::string id = answer->submission_id();
  EXPECT_TRUE(id.starts_with("raysubmit_"));
  EXPECT_EQ(id.size(), 26u);
  auto start = take(sink.starts);
  EXPECT_EQ(start.node.node, node_id(1));
  EXPECT_EQ(start.request.env().at("RAY_ADDRESS"), "10.0.0.1:6379");
  EXPECT_EQ(start.request.env().at("RAY_SUBMISSION_ID"), id);
  auto config = nlohmann::json::parse(start.request.env().at("RAY_JOB_CONFIG_JSON_ENV_VAR"));
  EXPECT_EQ(config["metadata"]["job_submission_id"], id);
  EXPECT_EQ(config["metadata"]["team"], "x");
  EXPECT_TRUE(config["runtime_env"].empty());
  EXPECT_EQ(status(id), "PENDING");
  core->start_job_answered(id, node_id(1), {}, now);
  commit();
  EXPECT_EQ(status(id), "RUNNING");
  auto job_request_of = job_request(1);
  job_request_of.mutable_config()->set_submission_id(id);
  Answer<proto::AddJobReply> driver;
  core->add_job(job_request_of, now, driver.reply());
  commit();
  EXPECT_EQ(core->view().submitted_job(id)->job_id(), driver->job_id());
  EXPECT_TRUE(report_job(1, id, "FAILED", 3));
  EXPECT_EQ(status(id), "FAILED");
  EXPECT_EQ(core->view().submitted_job(id)->exit_code(), 3);
  EXPECT_TRUE(report_job(1, id, "RUNNING"));  // A late report does not revive an ended job.
  EXPECT_EQ(status(id), "FAILED");
  EXPECT_FALSE(stop(id)->stopped());
}

TEST_F(JobsTest, ARuntimeEnvironmentGoesToTheNodeAndTheDriver) {
  add_node(1, {});
  proto::SubmitJobRequest request;
  request.set_entrypoint("x");
  request.set_runtime_env_json(R"({"env_vars": {"A": "b"}})");
  Answer<proto::SubmitJobReply> answer;
  core->submit_job(request, now, answer.reply());
  commit();
  auto start = take(sink.starts);
  EXPECT_EQ(start.request.job().runtime_env_json(), request.runtime_env_json());
  EXPECT_EQ(nlohmann::json::parse(start.request.env().at(
                "RAY_JOB_CONFIG_JSON_ENV_VAR"))["runtime_env"]["env_vars"]["A"],
            "b");
}

TEST_F(JobsTest, SubmissionIdsAndEntrypointsAreChecked) {
  add_node(1, {});
  EXPECT_EQ(submit("a b").error().code, Code::kInvalid);
  EXPECT_EQ(submit(".hidden").error().code, Code::kInvalid);
  EXPECT_EQ(submit("-x").error().code, Code::kInvalid);
  EXPECT_EQ(submit("--address").error().code, Code::kInvalid);
  EXPECT_EQ(submit("../x").error().code, Code::kInvalid);
  EXPECT_EQ(submit(std::string(201, 'a')).error().code, Code::kInvalid);
  EXPECT_EQ(submit("x", "").error().code, Code::kInvalid);
  EXPECT_TRUE(submit(std::string(200, 'a')).ok());
  EXPECT_TRUE(submit("my-job_1").ok());
  auto twice = submit("my-job_1");
  EXPECT_EQ(twice.error().code, Code::kAlreadyExists);
  EXPECT_NE(twice.error().message.find("already exists"), std::string::npos);
  sink.starts.clear();
  proto::SubmitJobRequest request;
  Answer<proto::SubmitJobReply> cut;
  request.set_entrypoint(std::string("true\0; x", 8));
  core->submit_job(request, now, cut.reply());
  EXPECT_EQ(cut.error().code, Code::kInvalid);
  request.set_entrypoint("x");
  for (const std::string& env : {std::string("[\"pip\"]"), "{\"a\": " + std::string(30'000, '[') +
                                                               std::string(30'000, ']') + "}"}) {
    request.set_runtime_env_json(env);
    Answer<proto::SubmitJobReply> answer;
    core->submit_job(request, now, answer.reply());
    EXPECT_EQ(answer.error().code, Code::kInvalid);
  }
  EXPECT_EQ(core->view().submitted_job("nope").error().code, Code::kNotFound);
  EXPECT_EQ(stop("nope").error().code, Code::kNotFound);
}

TEST_F(JobsTest, ASubmittedJobWaitsForANode) {
  EXPECT_TRUE(submit("early").ok());
  EXPECT_EQ(status("early"), "PENDING");
  add_node(1, {});
  EXPECT_EQ(take(sink.starts).request.job().submission_id(), "early");
  // The connection breaks before the answer. The start is repeated, and the node answers that the
  // job already runs.
  core->connection_closed(conn_of(1), now);
  core->start_job_answered("early", node_id(1), make_error(Code::kUnavailable, "lost"), now);
  register_node(301, registration(1, {}));
  EXPECT_EQ(take(sink.starts).node.conn, 301u);
  core->start_job_answered("early", node_id(1), make_error(Code::kAlreadyExists, "runs"), now);
  commit();
  EXPECT_EQ(status("early"), "RUNNING");
  drop_node_pushes();
}

TEST_F(JobsTest, AStartWithoutAnAnswerInTimeIsNoFailure) {
  add_node(1, {});
  EXPECT_TRUE(submit("slow").ok());
  take(sink.starts);
  core->start_job_answered("slow", node_id(1), make_error(Code::kTimeout, "no answer"), now);
  commit();
  EXPECT_EQ(status("slow"), "PENDING");
  EXPECT_TRUE(report_job(1, "slow", "RUNNING"));
  EXPECT_EQ(status("slow"), "RUNNING");
}

TEST_F(JobsTest, ASubmittedJobFailsWithItsNodeOrItsCommand) {
  add_node(1, {});
  EXPECT_TRUE(submit("a").ok());
  take(sink.starts);
  core->start_job_answered("a", node_id(1), make_error(Code::kIo, "no shell"), now);
  commit();
  EXPECT_EQ(status("a"), "FAILED");
  EXPECT_NE(core->view().submitted_job("a")->message().find("no shell"), std::string::npos);
  EXPECT_TRUE(submit("b").ok());
  take(sink.starts);
  core->start_job_answered("b", node_id(1), {}, now);
  commit();
  lose_node(1);
  EXPECT_EQ(status("b"), "FAILED");
  EXPECT_NE(core->view().submitted_job("b")->message().find("died"), std::string::npos);
}

TEST_F(JobsTest, Stopping) {
  EXPECT_TRUE(submit("waiting").ok());
  EXPECT_TRUE(stop("waiting")->stopped());
  EXPECT_EQ(status("waiting"), "STOPPED");
  add_node(1, {});
  EXPECT_TRUE(submit("running").ok());
  take(sink.starts);
  core->start_job_answered("running", node_id(1), {}, now);
  commit();
  auto answer = stop("running");
  EXPECT_FALSE(answer.answered());
  EXPECT_EQ(take(sink.stops).submission_id, "running");
  proto::StopJobReply stopped;
  stopped.set_stopped(true);
  core->stop_job_answered("running", stopped, now);
  EXPECT_TRUE(answer->stopped());
  // The job counts as running until the node reports the end of the process.
  EXPECT_EQ(status("running"), "RUNNING");
  EXPECT_TRUE(report_job(1, "running", "STOPPED"));
  EXPECT_EQ(status("running"), "STOPPED");
  EXPECT_EQ(report_job(1, "running", "CONFUSED").error().code, Code::kInvalid);
  EXPECT_EQ(report_job(1, "unknown", "RUNNING").error().code, Code::kNotFound);
}

// Otherwise a head that is restarted before then would ask another node as well.
TEST_F(JobsTest, ANodeIsAskedOnceTheDiskHasItsName) {
  add_node(1, {{"CPU", 1}});
  proto::SubmitJobRequest request;
  request.set_submission_id("a");
  request.set_entrypoint("true");
  core->submit_job(request, now, [](Result<proto::SubmitJobReply>) {});
  auto [submitted, record] = take(sink.persists);
  MemoryStorage::write(disk, record);
  core->persisted(submitted, {}, now);
  EXPECT_TRUE(sink.starts.empty());
  // Its node comes back before then, and is not asked either.
  core->connection_closed(conn_of(1), now);
  Answer<proto::RegisterNodeReply> registered;
  core->register_node(301, registration(1, {{"CPU", 1}}), now, registered.reply());
  EXPECT_TRUE(sink.starts.empty());
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  commit();
  EXPECT_EQ(core->view().submitted_job("a")->node_id(), "") << "it waits for a node again";
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_EQ(take(sink.starts).request.job().submission_id(), "a");
  drop_node_pushes();
}

TEST_F(JobsTest, AJobThatWaitsInANewHeadFailsInTimeWithoutAnyNode) {
  EXPECT_TRUE(submit("waits").ok());
  restart();
  advance(options.settings.job_start_timeout_ms + 1000);
  EXPECT_EQ(core->view().submitted_job("waits")->status(), "FAILED");
}

TEST_F(JobsTest, AJobThatWaitsIsStoppedOnceTheDiskSaysSo) {
  EXPECT_TRUE(submit("waits").ok());
  Answer<proto::StopJobReply> answer;
  core->stop_submitted_job("waits", now, answer.reply());
  EXPECT_FALSE(answer.answered());
  commit();
  EXPECT_TRUE(answer->stopped());
  add_node(1, {});
  // The node of this one is not on the disk yet.
  proto::SubmitJobRequest request;
  request.set_submission_id("chosen");
  request.set_entrypoint("true");
  core->submit_job(request, now, [](Result<proto::SubmitJobReply>) {});
  auto [submitted, record] = take(sink.persists);
  core->persisted(submitted, {}, now);
  Answer<proto::StopJobReply> early;
  core->stop_submitted_job("chosen", now, early.reply());
  commit();
  EXPECT_TRUE(early->stopped());
  EXPECT_EQ(status("chosen"), "STOPPED");
}

TEST_F(JobsTest, AnEndThatIsNotOnDiskIsAskedForAgain) {
  add_node(1, {});
  for (const char* id : {"a", "b"}) {
    EXPECT_TRUE(submit(id).ok());
    take(sink.starts);
    EXPECT_TRUE(report_job(1, id, "RUNNING"));
  }
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(report_job(1, "a", "SUCCEEDED").error().code, Code::kOutOfDisk);
    EXPECT_EQ(status("a"), "SUCCEEDED");
  }
  disk.failure.reset();
  restart();
  EXPECT_EQ(status("a"), "RUNNING");
  register_node(conn_of(1), registration(1, {}));
  drop_node_pushes();
  EXPECT_EQ(status("a"), "RUNNING") << "the node has yet to report it";
  EXPECT_TRUE(report_job(1, "a", "SUCCEEDED"));
  EXPECT_TRUE(report_job(1, "b", "RUNNING"));
  EXPECT_EQ(status("a"), "SUCCEEDED");
  restart();
  EXPECT_EQ(status("a"), "SUCCEEDED");
  EXPECT_EQ(status("b"), "RUNNING");
}

TEST_F(JobsTest, ARunningJobThatItsNodeDoesNotHaveHasFailed) {
  add_node(1, {});
  for (const char* id : {"a", "b"}) {
    EXPECT_TRUE(submit(id).ok());
    take(sink.starts);
    EXPECT_TRUE(report_job(1, id, "RUNNING"));
  }
  restart();
  register_node(conn_of(1), registration(1, {}));
  drop_node_pushes();
  EXPECT_EQ(status("a"), "RUNNING") << "the node does not tell which jobs it has";
  auto request = registration(1, {});
  request.mutable_submitted_jobs()->add_submission_ids("a");
  register_node(conn_of(1), request);
  drop_node_pushes();
  EXPECT_EQ(status("a"), "RUNNING");
  EXPECT_EQ(status("b"), "FAILED");
  EXPECT_NE(core->view().submitted_job("b")->message().find("no longer has"), std::string::npos);
}

TEST_F(JobsTest, TheLogsOfForgottenJobsAreRemoved) {
  options.settings.finished_jobs_kept = 1;
  restart();
  add_node(1, {});
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_TRUE(submit(id).ok());
    take(sink.starts);
  }
  EXPECT_TRUE(report_job(1, "a", "SUCCEEDED"));
  EXPECT_TRUE(sink.removed_logs.empty());
  EXPECT_TRUE(report_job(1, "b", "SUCCEEDED"));
  EXPECT_EQ(take(sink.removed_logs).submission_id, "a");
  // Job c fails with its node, and b is forgotten; no node is left to remove b's log.
  lose_node(1);
  EXPECT_FALSE(core->view().submitted_job("b"));
  EXPECT_EQ(status("c"), "FAILED");
}

TEST_F(JobsTest, ARestartedHeadForgetsFirstWhatEndedFirst) {
  options.settings.finished_jobs_kept = 2;
  restart();
  add_node(1, {});
  for (const char* id : {"c", "b", "a", "d"}) {
    EXPECT_TRUE(submit(id).ok());
    take(sink.starts);
  }
  for (const char* id : {"c", "b"}) {
    EXPECT_TRUE(report_job(1, id, "SUCCEEDED"));
    now.wall_us += 1'000'000;
  }
  restart();
  add_node(1, {});
  drop_node_pushes();
  sink.starts.clear();
  EXPECT_TRUE(report_job(1, "a", "SUCCEEDED"));
  EXPECT_EQ(take(sink.removed_logs).submission_id, "c");
  EXPECT_EQ(status("b"), "SUCCEEDED");
}

TEST_F(JobsTest, ARecordIsDeletedOnceItsJobHasEnded) {
  add_node(1, {});
  EXPECT_TRUE(submit("a").ok());
  take(sink.starts);
  auto remove = [&](const std::string& id) {
    Answer<proto::Empty> answer;
    core->delete_submitted_job(id, now, answer.reply());
    commit();
    core->check_invariants(now);
    return answer;
  };
  EXPECT_EQ(remove("nope").error().code, Code::kNotFound);
  EXPECT_EQ(remove("a").error().code, Code::kInvalid);
  EXPECT_TRUE(report_job(1, "a", "SUCCEEDED"));
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  EXPECT_EQ(remove("a").error().code, Code::kOutOfDisk);
  EXPECT_EQ(status("a"), "SUCCEEDED") << "who is told that it failed finds it as it was";
  EXPECT_TRUE(sink.removed_logs.empty());
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_FALSE(disk.tables["submitted_jobs"].empty());
  proto::SubmittedJob late = *core->view().submitted_job("a");
  EXPECT_TRUE(remove("a").ok());
  EXPECT_EQ(take(sink.removed_logs).submission_id, "a");
  EXPECT_EQ(core->view().submitted_job("a").error().code, Code::kNotFound);
  EXPECT_TRUE(disk.tables["submitted_jobs"].empty());
  advance(1);
  EXPECT_TRUE(submit("a").ok());  // The id is free again.
  take(sink.starts);
  EXPECT_EQ(report_job(1, late).error().code, Code::kNotFound)
      << "a node that was away when its job was deleted tells once more how it ended";
  EXPECT_EQ(status("a"), "PENDING");
}

TEST_F(JobsTest, AnEntrypointRunsWhereItsResourcesAre) {
  add_node(1, {{"CPU", 1}});
  add_node(2, {{"CPU", 4}});
  submit("big", "x", {{"CPU", 3}});
  auto start = take(sink.starts);
  EXPECT_EQ(start.node.node, node_id(2));
  EXPECT_EQ(ResourceSet::from_proto(start.request.job().entrypoint_resources()).get("CPU"), 3);
  // The resources were taken in the meantime. The job waits, its message says for which resources,
  // and its start is tried again.
  core->start_job_answered("big", node_id(2), make_error(Code::kResourceExhausted, "no room"), now);
  commit();
  EXPECT_EQ(core->view().submitted_job("big")->node_id(), "");
  EXPECT_NE(core->view().submitted_job("big")->message().find("{'CPU': 3.0}"), std::string::npos);
  advance(options.settings.placement_settle_ms);
  EXPECT_EQ(take(sink.starts).node.node, node_id(2));
  core->start_job_answered("big", node_id(2), {}, now);
  commit();
  EXPECT_EQ(status("big"), "RUNNING");
  EXPECT_EQ(core->view().submitted_job("big")->message(), "Job is currently running.");
}

TEST_F(JobsTest, AnEntrypointNobodyHasRoomForFails) {
  options.settings.job_start_timeout_ms = 1000;
  restart();
  add_node(1, {{"CPU", 1}});
  submit("huge", "x", {{"CPU", 30}});
  EXPECT_NE(core->view().submitted_job("huge")->message().find("which no node of the cluster has"),
            std::string::npos);
  advance_alive(1200, {1});
  EXPECT_EQ(status("huge"), "FAILED");
  EXPECT_EQ(core->view().submitted_job("huge")->error_type(), "JOB_SUPERVISOR_ACTOR_START_TIMEOUT");
}

TEST_F(JobsTest, WithoutALivingNodeAJobSaysHowToStartOne) {
  submit("early", "x", {{"CPU", 1}});
  EXPECT_EQ(core->view().submitted_job("early")->message(),
            "Job has not started yet. It waits because no node is alive: start one with `rayctl "
            "start --address=10.0.0.1:6379`.");
  add_node(1, {{"CPU", 1}});
  advance(options.settings.placement_settle_ms);
  EXPECT_EQ(take(sink.starts).node.node, node_id(1));
  EXPECT_EQ(core->view().submitted_job("early")->message(), "Job has not started yet.");
}

TEST_F(JobsTest, AFullDiskRefusesTheSubmission) {
  add_node(1, {});
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  proto::SubmitJobRequest request;
  request.set_submission_id("a");
  request.set_entrypoint("true");
  Answer<proto::SubmitJobReply> answer;
  core->submit_job(request, now, answer.reply());
  EXPECT_EQ(core->view().submitted_jobs().jobs_size(), 0)
      << "nobody has heard whether it is on disk";
  commit();
  EXPECT_EQ(answer.error().code, Code::kOutOfDisk);
  EXPECT_EQ(core->view().submitted_jobs().jobs_size(), 0);
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_TRUE(submit("a").ok());
  take(sink.starts);
}

}  // namespace
}  // namespace rt::head
