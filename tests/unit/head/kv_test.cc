// The key-value store in the head's core, with the functions and packages that are kept in it.
#include "tests/unit/head/core_fixture.h"

namespace rt::head {
namespace {

class KvTest : public HeadTest {
 protected:
  Answer<proto::KvPutReply> put(const std::string& key, const std::string& value,
                                bool overwrite = true, std::optional<JobId> job = {}) {
    proto::KvPutRequest request;
    request.set_ns("fun");
    request.set_key(key);
    request.set_value(value);
    request.set_overwrite(overwrite);
    if (job) request.set_job_id(job->binary());
    Answer<proto::KvPutReply> answer;
    core->kv_put(request, now, answer.reply());
    return answer;
  }
  static proto::KvGetRequest key_request(const std::string& key, const std::string& ns = "fun") {
    proto::KvGetRequest request;
    request.set_ns(ns);
    request.set_key(key);
    return request;
  }
  std::string get(const std::string& key) {
    auto reply = core->view().kv_get(key_request(key));
    return reply && reply->found() ? reply->value() : "(none)";
  }
  Answer<proto::KvPutReply> erase(const std::string& key) {
    Answer<proto::KvPutReply> answer;
    core->kv_delete(key_request(key), now, answer.reply());
    return answer;
  }
};

TEST_F(KvTest, PutGetListDelete) {
  auto first = put("a", "1");
  EXPECT_FALSE(first.answered());
  commit();
  EXPECT_TRUE(first->added());
  auto kept = put("a", "2", false);
  commit();
  EXPECT_FALSE(kept->added());
  EXPECT_EQ(get("a"), "1");
  auto replaced = put("a", "2");
  commit();
  EXPECT_FALSE(replaced->added());
  EXPECT_EQ(get("a"), "2");
  put("ab", "");
  put("b", "3");
  commit();
  EXPECT_EQ(get("ab"), "");
  proto::KvListRequest list;
  list.set_ns("fun");
  list.set_prefix("a");
  EXPECT_EQ(core->view().kv_list(list)->keys_size(), 2);
  list.set_ns("fu");  // Key "na" in "fu" is not key "a" in "fun".
  list.set_prefix("");
  EXPECT_EQ(core->view().kv_list(list)->keys_size(), 0);
  auto erased = erase("a"), nothing = erase("zzz");
  EXPECT_EQ(get("a"), "(none)");
  commit();
  EXPECT_TRUE(erased->added());
  EXPECT_FALSE(nothing->added());
  EXPECT_EQ(disk.tables["kv"].size(), 2u);
}

TEST_F(KvTest, BadInput) {
  EXPECT_EQ(put("", "x").error().code, Code::kInvalid);
  EXPECT_EQ(put(std::string(5000, 'k'), "x").error().code, Code::kInvalid);
  options.settings.kv_value_max_bytes = 10;
  restart();
  EXPECT_EQ(put("a", std::string(11, 'x')).error().code, Code::kResourceExhausted);
  EXPECT_EQ(core->view().kv_get(key_request("")).error().code, Code::kInvalid);
}

TEST_F(KvTest, AFailedWriteRestoresWhatIsOnDisk) {
  put("a", "old");
  commit();
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  auto one = put("a", "new"), two = put("a", "newer"), gone = erase("a"), fresh = put("b", "x");
  commit();
  EXPECT_EQ(one.error().code, Code::kOutOfDisk);
  EXPECT_EQ(two.error().code, Code::kOutOfDisk);
  EXPECT_EQ(gone.error().code, Code::kOutOfDisk);
  EXPECT_EQ(fresh.error().code, Code::kOutOfDisk);
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(get("b"), "(none)");
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_EQ(disk.tables["kv"][kv_key("fun", "a")], "old");
  EXPECT_FALSE(disk.tables["kv"].contains(kv_key("fun", "b")));
}

TEST_F(KvTest, ALaterWriteThatSucceedsStays) {
  auto one = put("a", "1"), two = put("a", "2");
  auto [first, batch1] = take(sink.persists);
  auto [second, batch2] = take(sink.persists);
  core->persisted(first, make_error(Code::kIo, "disk"), now);
  MemoryStorage::write(disk, batch2);
  core->persisted(second, {}, now);
  EXPECT_FALSE(one.ok());
  EXPECT_TRUE(two.ok());
  EXPECT_EQ(get("a"), "2");
  advance(options.settings.storage_retry_ms);
  EXPECT_EQ(disk.tables["kv"][kv_key("fun", "a")], "2");
}

TEST_F(KvTest, FunctionsGoWithTheLastJobThatPutThem) {
  add_node(1, {});
  JobId one = add_job(), two = add_job();
  put("shared", "code", false, one);
  put("mine", "code", false, one);
  put("everyones", "code", false, one);
  commit();
  put("shared", "code", false, two);
  put("everyones", "code", false);
  commit();
  finish_job(one);
  EXPECT_EQ(get("mine"), "(none)");
  EXPECT_EQ(get("shared"), "code");
  restart();
  sink.pushes.clear();
  EXPECT_EQ(get("shared"), "code");
  register_node(301, [&] {
    auto back = registration(1, {});
    back.add_live_jobs()->set_job_id(two.binary());
    return back;
  }());
  finish_job(two);
  EXPECT_EQ(get("shared"), "(none)");
  EXPECT_EQ(get("everyones"), "code");
  EXPECT_EQ(disk.tables["kv"].size(), 1u);
  EXPECT_TRUE(disk.tables["kv_jobs"].empty());
  sink.pushes.clear();
}

TEST_F(KvTest, CodeOfDetachedActorsOutlivesTheirJob) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job();
  put("class", "code", false, job);
  commit();
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->set_detached(true);
  ActorId id = alive_actor(request, 1);
  finish_job(job);
  EXPECT_EQ(get("class"), "code");
  EXPECT_TRUE(kill(id, true));
  EXPECT_EQ(get("class"), "(none)");
  take(sink.kills);
  sink.pushes.clear();
}

TEST_F(KvTest, AnEntryGoesWithItsJobAlsoIfTheDiskRefusesThat) {
  add_node(1, {});
  const JobId job = add_job();
  put("code", "x", false, job);
  commit();
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  finish_job(job);
  sink.pushes.clear();
  EXPECT_EQ(get("code"), "(none)");
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_TRUE(disk.tables["kv"].empty());
  EXPECT_TRUE(disk.tables["kv_jobs"].empty());
}

TEST_F(KvTest, AWriteThatTheDiskRefusesLeavesTheEntryToItsJobs) {
  add_node(1, {});
  const JobId job = add_job(), other = add_job();
  for (const char* key : {"for good", "deleted", "twice"}) put(key, "x", false, job);
  commit();
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  auto for_good = put("for good", "y"), deleted = erase("deleted");
  auto twice = put("twice", "x", false, other);
  commit();
  for (const Error& error : {for_good.error(), deleted.error(), twice.error()})
    EXPECT_EQ(error.code, Code::kOutOfDisk);
  disk.failure.reset();
  for (const char* key : {"for good", "deleted", "twice"}) EXPECT_EQ(get(key), "x");
  finish_job(job);
  sink.pushes.clear();
  for (const char* key : {"for good", "deleted", "twice"}) EXPECT_EQ(get(key), "(none)");
  advance(options.settings.storage_retry_ms);
  EXPECT_TRUE(disk.tables["kv"].empty());
  EXPECT_TRUE(disk.tables["kv_jobs"].empty());
}

TEST_F(KvTest, AWriteInFlightBringsNothingBackForAJobThatHasEnded) {
  add_node(1, {});
  const JobId job = add_job();
  put("code", "x", false, job);
  commit();
  auto deleted = erase("code");
  proto::FinishJobRequest request;
  request.set_job_id(job.binary());
  EXPECT_TRUE(core->finish_job(request, now));
  sink.pushes.clear();
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  commit();
  EXPECT_FALSE(deleted.ok());
  EXPECT_EQ(get("code"), "(none)");
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_TRUE(disk.tables["kv"].empty());
}

TEST_F(KvTest, AJobIsToldThatItKeepsAnEntryOnceTheDiskHasIt) {
  add_node(1, {});
  const JobId one = add_job(), two = add_job();
  put("shared", "code", false, one);
  commit();
  auto kept = put("shared", "code", false, two);
  EXPECT_FALSE(kept.answered());
  commit();
  EXPECT_FALSE(kept->added());
  EXPECT_TRUE(put("shared", "code", false, two).answered()) << "nothing changes";
}

TEST_F(KvTest, NothingIsStoredForAJobThatIsOver) {
  add_node(1, {});
  const JobId job = add_job();
  finish_job(job);
  sink.pushes.clear();
  EXPECT_EQ(put("late", "code", false, job).error().code, Code::kNotFound);
  EXPECT_EQ(get("late"), "(none)");
}

TEST_F(KvTest, ARecordOnItsWayIsNotWrittenAgain) {
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  put("a", "1");
  commit();
  put("a", "2");
  set_time(now.steady_us + options.settings.storage_retry_ms * 1000);
  core->tick(now);
  // If the disk took a copy of the second value, and the second write itself failed, the disk would
  // have what its writer was told to be refused.
  ASSERT_EQ(sink.persists.size(), 1u);
  commit();
  EXPECT_EQ(get("a"), "(none)");
  disk.failure.reset();
  advance(options.settings.storage_retry_ms);
  EXPECT_TRUE(disk.tables["kv"].empty());
}

// Otherwise a head that starts then would take the first job for running, and not have its code.
TEST_F(KvTest, WhatEndedJobsKeptIsDeletedOnceTheDiskHasTheirEnds) {
  for (const bool in_flight : {false, true}) {
    add_node(1, {});
    const JobId one = add_job(), two = add_job();
    for (const JobId& job : {one, two}) put("shared", "code", false, job);
    commit();
    auto finish = [&](const JobId& job) {
      proto::FinishJobRequest request;
      request.set_job_id(job.binary());
      EXPECT_TRUE(core->finish_job(request, now));
    };
    finish(one);
    if (in_flight) finish(two);
    auto [first, refused] = take(sink.persists);
    core->persisted(first, make_error(Code::kOutOfDisk, "no space left"), now);
    if (!in_flight) finish(two);
    commit();
    restart();
    EXPECT_EQ(get("shared"), "(none)");
    EXPECT_FALSE(core->view().jobs().running(one)) << in_flight;
  }
}

// The end of a job reaches the disk with the first batch that depends on it, and the deletions that
// were refused with it a little later.
TEST_F(KvTest, WhatEndedJobsKeptIsDeletedByTheNextHead) {
  add_node(1, {});
  const JobId job = add_job();
  put("code", "x", false, job);
  commit();
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  finish_job(job);
  disk.failure.reset();
  put("other", "y", false, add_job());
  commit();
  sink.pushes.clear();
  restart();
  EXPECT_FALSE(core->view().jobs().running(job));
  EXPECT_EQ(get("code"), "(none)");
  EXPECT_FALSE(disk.tables["kv"].contains(kv_key("fun", "code")));
}

TEST_F(KvTest, AnEntryLosesAJobOnceTheDiskHasTheEndOfItsLastActor) {
  add_node(1, {{"CPU", 1}});
  const JobId job = add_job(), other = add_job();
  put("shared", "code", false, job);
  commit();
  auto request = actor_request(job, {}, {});
  request.mutable_spec()->set_detached(true);
  const ActorId actor = alive_actor(request, 5);
  finish_job(job);
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  died(1, actor, 1, proto::ExitInfo::INTENTIONAL);
  disk.failure.reset();
  put("shared", "code of another", false, other);
  commit();
  restart();
  EXPECT_FALSE(core->view().actors().any_of_job(job));
}

TEST_F(KvTest, APackageGoesOnceTheDiskHasTheEndOfItsJob) {
  options.settings.packages_max_bytes = 5;
  restart();
  auto upload = [&](const std::string& name) {
    proto::KvPutRequest request;
    request.set_ns("pkg");
    request.set_key(name);
    request.set_value("abcd");
    core->kv_put(request, now, [](const Result<proto::KvPutReply>&) {});
    commit();
  };
  upload("_ray_pkg_a.zip");
  proto::SubmitJobRequest request;
  request.set_submission_id("waits");
  request.set_entrypoint("true");
  request.set_runtime_env_json(R"({"working_dir":"gcs://_ray_pkg_a.zip"})");
  core->submit_job(request, now, [](const Result<proto::SubmitJobReply>&) {});
  commit();
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  core->stop_submitted_job("waits", now, [](const Result<proto::StopJobReply>&) {});
  commit();
  disk.failure.reset();
  // The next record of the job is written a second later.
  now.steady_us += 61'000'000;
  upload("_ray_pkg_b.zip");
  EXPECT_FALSE(core->view().kv_get(key_request("_ray_pkg_a.zip", "pkg"))->found());
  restart();
  EXPECT_EQ(core->view().submitted_job("waits")->status(), "STOPPED");
}

// The limit of 12 bytes holds three packages of 4 bytes.
TEST_F(KvTest, PackagesThatNothingNamesMakeRoomForNewOnes) {
  options.settings.packages_max_bytes = 12;
  restart();
  auto upload = [&](const std::string& key, const std::string& value = "abcd") {
    proto::KvPutRequest request;
    request.set_ns("pkg");
    request.set_key(key);
    request.set_value(value);
    request.set_overwrite(true);
    Answer<proto::KvPutReply> answer;
    core->kv_put(request, now, answer.reply());
    commit();
    return answer;
  };
  auto there = [&](const std::string& key) {
    return core->view().kv_get(key_request(key, "pkg"))->found();
  };
  EXPECT_TRUE(upload("_ray_pkg_a.zip#0").ok());
  EXPECT_TRUE(upload("_ray_pkg_a.zip", "{}").ok());
  EXPECT_TRUE(upload("_ray_pkg_b.zip").ok());
  auto refused = upload("_ray_pkg_c.zip");
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted) << "their jobs are about to come";
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("packages_max_bytes (12)"));
  advance(61'000);
  add_node(1, {{"CPU", 1}});
  auto driver = job_request(1);
  driver.mutable_config()->set_runtime_env(R"({"working_dir":"gcs://_ray_pkg_a.zip"})");
  Answer<proto::AddJobReply> job;
  core->add_job(driver, now, job.reply());
  commit();
  ASSERT_TRUE(job.ok());
  EXPECT_TRUE(upload("_ray_pkg_c.zip").ok());
  EXPECT_TRUE(there("_ray_pkg_a.zip") && there("_ray_pkg_a.zip#0")) << "a driver runs in it";
  EXPECT_FALSE(there("_ray_pkg_b.zip"));
  advance_alive(61'000, {1});
  EXPECT_TRUE(upload("_ray_pkg_d.zip", "abcdef").ok());
  EXPECT_FALSE(there("_ray_pkg_c.zip"));
  EXPECT_FALSE(upload("_ray_pkg_e.zip", "more than all").ok());
  finish_job(JobId::from_binary(job->job_id()));
  sink.pushes.clear();
  advance_alive(61'000, {1});
  EXPECT_TRUE(upload("_ray_pkg_e.zip", "0123456789").ok());
  EXPECT_FALSE(there("_ray_pkg_a.zip") || there("_ray_pkg_a.zip#0") || there("_ray_pkg_d.zip"));
}

}  // namespace
}  // namespace rt::head
