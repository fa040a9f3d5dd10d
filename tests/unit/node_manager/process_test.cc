// Worker processes, entrypoints of jobs and plain processes, all of them real. Workers run a tiny
// `ray._private.worker_main` that the test writes.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/log_names.h"
#include "daemons/node_manager/process/env_vars.h"
#include "daemons/node_manager/process/job_processes.h"
#include "starter_fixture.h"

namespace rt::node {
namespace {

TEST_F(WorkerStarterTest, ForksWorkersAndReportsHowTheyEnd) {
  make(
      "import sys\n"
      "def main(args):\n"
      "    print('out of', args['node_id'], flush=True)\n"
      "    print('some trouble', file=sys.stderr)\n"
      "    return 3\n");
  WorkerId id = spawn();
  ASSERT_TRUE(await_end(id));
  EXPECT_EQ(ended[id].exit_code, 3);
  EXPECT_EQ(ended[id].signal, 0);
  EXPECT_EQ(ended[id].log_tail, "some trouble\n");
  EXPECT_GT(spawned[id].start_time, 0u);
  EXPECT_EQ(file_tail(starter->log_path(id, spawned[id].pid, false)), "out of ab\n");
}

TEST_F(WorkerStarterTest, AnExceptionIsATracebackInTheLog) {
  make("def main(args):\n    raise ValueError('boom')\n");
  WorkerId id = spawn();
  ASSERT_TRUE(await_end(id));
  EXPECT_EQ(ended[id].exit_code, 1);
  EXPECT_NE(ended[id].log_tail.find("ValueError: boom"), std::string::npos);
}

TEST_F(WorkerStarterTest, KillsWithAndWithoutAKnownProcess) {
  make("import time\ndef main(args):\n    time.sleep(1000)\n");
  WorkerId unborn = spawn();
  starter->kill(unborn);
  WorkerId id = spawn();
  ASSERT_TRUE(driver.run_until([&] { return spawned.contains(id); }));
  starter->kill(id);
  ASSERT_TRUE(await_end(id));
  ASSERT_TRUE(await_end(unborn));
  EXPECT_EQ(ended[id].signal, SIGKILL);
  EXPECT_EQ(ended[unborn].signal, SIGKILL);
}

TEST_F(WorkerStarterTest, ABurstOfWorkersEachInItsOwnProcess) {
  make(
      "import os, random\ndef main(args):\n    print(random.random(), flush=True)\n    return 0\n");
  for (int i = 0; i < 20; ++i) spawn();
  ASSERT_TRUE(driver.run_until([&] { return ended.size() == 20; }));
  std::set<std::string> outputs;
  std::set<int> pids;
  for (const auto& [id, process] : spawned) {
    pids.insert(process.pid);
    outputs.insert(file_tail(starter->log_path(id, process.pid, false)));
  }
  EXPECT_EQ(pids.size(), 20u);
  EXPECT_EQ(outputs.size(), 20u);  // Every forked process seeds its random numbers anew.
  EXPECT_FALSE(starter->has_processes());
}

// A worker that starts two programs, the second in a session of its own, and ends.
constexpr const char* kParent =
    "import os, subprocess\n"
    "def main(args):\n"
    "    ids = [subprocess.Popen(['sleep', '1000'], start_new_session=alone).pid for alone in "
    "(False, True)]\n"
    "    path = os.path.join(args['session_dir'], 'children')\n"
    "    open(path + '.tmp', 'w').write('%d %d' % tuple(ids))\n"
    "    os.rename(path + '.tmp', path)\n"
    "    os._exit(0)\n";

TEST_F(WorkerStarterTest, WhatAWorkerStartedEndsWithItUnlessItLeftItsGroup) {
  make(kParent);
  WorkerId id = spawn();
  ASSERT_TRUE(await_end(id));
  int with_it = 0, alone = 0;
  std::ifstream(dir.path("children")) >> with_it >> alone;
  ASSERT_GT(with_it, 0);
  EXPECT_TRUE(driver.run_until([&] { return process_is_ending(with_it); }));
  EXPECT_FALSE(process_is_ending(alone));
  ::kill(alone, SIGKILL);
}

TEST_F(WorkerStarterTest, ChildrenOfWorkersMayBeKept) {
  end_children = false;
  make(kParent);
  WorkerId id = spawn();
  ASSERT_TRUE(await_end(id));
  int kept = 0, alone = 0;
  std::ifstream(dir.path("children")) >> kept >> alone;
  EXPECT_FALSE(process_is_ending(kept));
  for (int pid : {kept, alone}) ::kill(pid, SIGKILL);
}

TEST_F(WorkerStarterTest, AServerThatCannotImportSaysWhy) {
  make("import there_is_no_such_module\n");
  WorkerId id = spawn();
  ASSERT_TRUE(driver.run_until([&] { return failed.contains(id); }));
  EXPECT_NE(failed[id].find("there_is_no_such_module"), std::string::npos);
}

TEST_F(WorkerStarterTest, AMissingInterpreterOrProgramSaysWhy) {
  make("def main(args):\n    return 0\n");
  WorkerId python = spawn({proto::LANGUAGE_PYTHON, "/no/such/python"});
  WorkerId cpp = spawn({proto::LANGUAGE_CPP, ""});
  ASSERT_TRUE(driver.run_until([&] { return failed.size() == 2; }));
  EXPECT_NE(failed[python].find("/no/such/python"), std::string::npos);
  EXPECT_NE(failed[cpp].find("ray-cpp-worker"), std::string::npos);
  EXPECT_EQ(starter->canonical_python("/no/such/python"), "");
  EXPECT_EQ(starter->canonical_python("/usr/bin/python3"), "");
}

TEST_F(WorkerStarterTest, AKilledServerTakesItsWorkersAlongAndIsReplaced) {
  make(
      "import os, time\n"
      "def main(args):\n"
      "    open(os.path.join(args['session_dir'], 'parent'), 'w').write(str(os.getppid()))\n"
      "    time.sleep(1000)\n");
  become_subreaper();
  WorkerId id = spawn();
  ASSERT_TRUE(driver.run_until(
      [&] { return spawned.contains(id) && !file_tail(dir.path("parent")).empty(); }));
  int server = std::stoi(file_tail(dir.path("parent")));
  ASSERT_EQ(kill(server, SIGKILL), 0);
  ASSERT_TRUE(await_end(id));
  EXPECT_EQ(ended[id].signal, SIGKILL);
  // Until the fork server is back, starts fail and are repeated, as the core does it.
  WorkerId next;
  ASSERT_TRUE(driver.run_until([&] {
    if (spawned.contains(next)) return true;
    if (next.is_nil() || failed.contains(next)) next = spawn();
    return false;
  }));
  starter->kill(next);
  ASSERT_TRUE(await_end(next));
}

TEST_F(WorkerStarterTest, AWorkerThatWasReapedBeforeItsServerWasHeardHasEnded) {
  make(
      "import os, signal\n"
      "def main(args):\n"
      "    first, second = (os.path.join(args['session_dir'], n) for n in ('first', 'second'))\n"
      "    if not os.path.exists(first):\n"
      "        open(first, 'w').write('is here')\n"
      "        signal.pause()\n"
      // The server waits for the next request once it has told of this worker.
      "    stat = f'/proc/{os.getppid()}/stat'\n"
      "    while open(stat).read().rpartition(')')[2].split()[0] != 'S': pass\n"
      "    open(second, 'w').write(str(os.getpid()))\n"
      "    os.kill(os.getppid(), signal.SIGKILL)\n"
      "    signal.pause()\n");
  become_subreaper();
  WorkerId first = spawn();
  ASSERT_TRUE(driver.run_until(
      [&] { return spawned.contains(first) && !file_tail(dir.path("first")).empty(); }));
  ::raise(SIGCHLD);  // The loop reaps before it reads the server's socket.
  WorkerId second = spawn();
  siginfo_t end;
  ASSERT_EQ(::waitid(P_ALL, 0, &end, WEXITED | WNOWAIT), 0);
  const int pid = std::stoi(file_tail(dir.path("second")));
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT), 0);
  ASSERT_TRUE(await_end(second));
  EXPECT_EQ(spawned[second].pid, pid);
  EXPECT_FALSE(ended[second].known);
  ASSERT_TRUE(await_end(first));
  EXPECT_EQ(ended[first].signal, SIGKILL);
}

TEST_F(WorkerStarterTest, AWorkerThatEndedBeforeItsServerWasHeardHasItsExitCode) {
  make(
      "import os\n"
      "def main(args):\n"
      "    first, second, gone = (os.path.join(args['session_dir'], n)\n"
      "                           for n in ('first', 'second', 'gone'))\n"
      "    if os.path.exists(first):\n"
      "        open(second, 'w').write(str(os.getpid()))\n"
      "        return 3\n"
      "    open(first, 'w').write('is here')\n"
      "    process = '/proc/' + open(second).read()\n"
      "    while os.path.exists(process): pass\n"
      "    open(gone, 'w').write('the server has reaped it')\n");
  ASSERT_EQ(::mkfifo(dir.path("second").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(dir.path("gone").c_str(), 0600), 0);
  WorkerId first = spawn();
  ASSERT_TRUE(driver.run_until(
      [&] { return spawned.contains(first) && !file_tail(dir.path("first")).empty(); }));
  WorkerId second = spawn();
  // Waits, without the loop, for the first worker to see that the second is gone.
  ASSERT_EQ(std::ifstream(dir.path("gone")).get(), 't');
  ASSERT_TRUE(await_end(second));
  EXPECT_TRUE(ended[second].known);
  EXPECT_EQ(ended[second].exit_code, 3);
  ASSERT_TRUE(await_end(first));
}

TEST_F(WorkerStarterTest, TheServersWorkersEndWithIt) {
  make("import signal\ndef main(args):\n    signal.pause()\n");
  WorkerId id = spawn();
  ASSERT_TRUE(driver.run_until([&] { return spawned.contains(id); }));
  ProcessId process = spawned[id];
  starter.reset();
  EXPECT_TRUE(
      driver.run_until([&] { return process_start_time(process.pid) != process.start_time; }));
}

class JobProcessesTest : public ProcessTest {
 protected:
  void SetUp() override {
    JobProcesses::Options options;
    options.session_dir = dir.root();
    options.python = "/usr/bin/python3";
    options.python_path = dir.path("py");
    options.head_address = "127.0.0.1:1";
    jobs = std::make_unique<JobProcesses>(loop(), reaper, options,
                                          [this](const proto::SubmittedJob& job) {
                                            reports.push_back(job);
                                            if (job.exited() && acknowledges)
                                              jobs->acknowledge(job);
                                          });
  }
  proto::SubmittedJob job(const std::string& entrypoint, const std::string& id = "raysubmit_1") {
    proto::SubmittedJob job;
    job.set_submission_id(id);
    job.set_entrypoint(entrypoint);
    return job;
  }
  bool await_reports(size_t n) {
    return driver.run_until([&] { return reports.size() >= n; });
  }

  bool acknowledges = true;
  std::unique_ptr<JobProcesses> jobs;
  std::vector<proto::SubmittedJob> reports;
};

TEST_F(JobProcessesTest, RunsAnEntrypointAndKeepsItsOutput) {
  ASSERT_TRUE(jobs->start(job("echo $RAY_ADDRESS $FOO; python -c 'print(6*7)'"), {{"FOO", "bar"}}));
  ASSERT_TRUE(await_reports(2));
  EXPECT_EQ(reports[0].status(), "RUNNING");
  EXPECT_GT(reports[0].pid(), 0);
  EXPECT_EQ(reports[1].status(), "SUCCEEDED");
  auto log = jobs->read_log("raysubmit_1", 0, 1000);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->data,
            "Running entrypoint for job raysubmit_1: echo $RAY_ADDRESS $FOO; python -c "
            "'print(6*7)'\n127.0.0.1:1 bar\n42\n");
  EXPECT_TRUE(reports[1].exited());
  EXPECT_EQ(jobs->read_log("raysubmit_1", log->next_offset, 10)->data, "");
  EXPECT_EQ(jobs->read_log("raysubmit_2", 0, 10).error().code, Code::kNotFound);
  EXPECT_EQ(jobs->read_log("../../etc/passwd", 0, 10).error().code, Code::kInvalid);
}

TEST_F(JobProcessesTest, AFailureCarriesCodeAndLastLines) {
  ASSERT_TRUE(jobs->start(job("echo it went wrong >&2; exit 7"), {}));
  ASSERT_TRUE(await_reports(2));
  EXPECT_EQ(reports[1].status(), "FAILED");
  EXPECT_EQ(reports[1].exit_code(), 7);
  EXPECT_TRUE(
      reports[1].message().starts_with("Job entrypoint command failed with exit code 7, last "
                                       "available logs (truncated to 20,000 chars):\n"));
  EXPECT_TRUE(reports[1].message().ends_with("it went wrong\n"));
}

TEST_F(JobProcessesTest, AnEndIsKeptUntilItIsAcknowledged) {
  acknowledges = false;
  auto told = [this] {
    std::string ids;
    for (const auto& report : jobs->reports()) ids += report.submission_id() + report.status();
    return ids;
  };
  ASSERT_TRUE(jobs->start(job("true", "a"), {}));
  EXPECT_EQ(told(), "aRUNNING");
  ASSERT_TRUE(await_reports(2));
  EXPECT_EQ(told(), "aSUCCEEDED");
  EXPECT_EQ(jobs->start(job("true", "a"), {}).error().code, Code::kAlreadyExists)
      << "a head that does not know the end must not start the job again";
  jobs->acknowledge(jobs->reports().front());
  EXPECT_EQ(told(), "");
  ASSERT_TRUE(jobs->start(job("true", "a"), {}));
  ASSERT_TRUE(await_reports(4));
  jobs->remove_log("a");  // The job was deleted.
  EXPECT_EQ(told(), "");
}

TEST_F(JobProcessesTest, AJobMayHaveTheIdOfADeletedOneWhoseEndWasNotAcknowledged) {
  acknowledges = false;
  ASSERT_TRUE(jobs->start(job("true", "a"), {}));
  ASSERT_TRUE(await_reports(2));
  const proto::SubmittedJob deleted = jobs->reports().front();
  proto::SubmittedJob next = job("false", "a");
  next.set_start_time_ms(7);
  ASSERT_TRUE(jobs->start(next, {}));
  ASSERT_TRUE(await_reports(4));
  EXPECT_EQ(reports[3].status(), "FAILED");
  jobs->acknowledge(deleted);
  ASSERT_EQ(jobs->reports().size(), 1u) << "nobody has heard how the second one ended";
  jobs->acknowledge(reports[3]);
  EXPECT_TRUE(jobs->reports().empty());
}

TEST_F(JobProcessesTest, StopEndsTheWholeGroup) {
  ASSERT_TRUE(jobs->start(job("sleep 1000 & echo $! > " + dir.path("child") + "; wait"), {}));
  ASSERT_TRUE(driver.run_until([&] { return !file_tail(dir.path("child")).empty(); }));
  int child = std::stoi(file_tail(dir.path("child")));
  uint64_t started = process_start_time(child);
  EXPECT_FALSE(jobs->start(job("true"), {}));  // A job of this id is running.
  EXPECT_TRUE(jobs->stop("raysubmit_1"));
  ASSERT_TRUE(await_reports(2));
  EXPECT_EQ(reports[1].status(), "STOPPED");
  EXPECT_FALSE(jobs->stop("raysubmit_1"));
  EXPECT_TRUE(
      driver.run_until([&] { return started != 0 && process_start_time(child) != started; }));
}

TEST_F(JobProcessesTest, IsStoppedAsItsEnvironmentSays) {
  auto polite = job("trap 'echo asked; exit 0' INT; while :; do sleep 0.02; done");
  polite.set_runtime_env_json(
      R"({"env_vars": {"RAY_JOB_STOP_SIGNAL": "SIGINT", "RAY_JOB_STOP_WAIT_TIME_S": "60"}})");
  ASSERT_TRUE(jobs->start(polite, {}));
  EXPECT_TRUE(jobs->stop("raysubmit_1"));
  ASSERT_TRUE(await_reports(2));
  EXPECT_EQ(reports[1].status(), "STOPPED");
  auto stubborn = job("trap '' TERM; echo deaf; while :; do sleep 0.02; done", "deaf");
  stubborn.set_runtime_env_json(R"({"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": "0.05"}})");
  ASSERT_TRUE(jobs->start(stubborn, {}));
  ASSERT_TRUE(
      driver.run_until([&] { return jobs->read_log("deaf", 0, 1000)->data.ends_with("deaf\n"); }));
  EXPECT_TRUE(jobs->stop("deaf"));
  ASSERT_TRUE(await_reports(4));
  EXPECT_EQ(reports[3].exit_code(), -9);
  EXPECT_EQ(reports[3].status(), "STOPPED");
}

TEST_F(JobProcessesTest, ALaterJobOfTheSameNameHasALogOfItsOwn) {
  ASSERT_TRUE(jobs->start(job("echo first and long"), {}));
  ASSERT_TRUE(await_reports(2));
  ASSERT_TRUE(jobs->start(job("echo 2"), {}));
  ASSERT_TRUE(await_reports(4));
  EXPECT_EQ(jobs->read_log("raysubmit_1", 0, 1000)->data,
            "Running entrypoint for job raysubmit_1: echo 2\n2\n");
}

TEST_F(JobProcessesTest, ALongOutputIsRotated) {
  auto loud = job("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 3");
  loud.set_runtime_env_json(
      R"({"env_vars": {"RAY_ROTATION_MAX_BYTES": "4096", "RAY_ROTATION_BACKUP_COUNT": "2"}})");
  ASSERT_TRUE(jobs->start(loud, {}));
  ASSERT_TRUE(await_reports(2));
  EXPECT_TRUE(reports[1].message().ends_with("line 1998\nline 1999\n"));
  std::string text;
  JobProcesses::Chunk chunk;
  do {
    chunk = *jobs->read_log("raysubmit_1", chunk.next_offset, 1000);
    text += chunk.data;
  } while (!chunk.data.empty());
  size_t note = text.find('\n'), kept = text.size() - note - 1;
  EXPECT_EQ(text.substr(0, note + 1), removed_note(chunk.size - static_cast<int64_t>(kept), false));
  int first = std::stoi(text.substr(note + 6));
  EXPECT_GT(first, 0);
  std::string expected;
  for (int i = first; i < 2000; ++i) expected += fmt::format("line {}\n", i);
  EXPECT_EQ(text.substr(note + 1), expected);
  EXPECT_LT(kept, 3u * 4200);
  EXPECT_TRUE(jobs->log_of_file("job-driver-raysubmit_1.log"));
  EXPECT_FALSE(jobs->log_of_file("job-driver-raysubmit_1.log.1"));
  EXPECT_TRUE(std::filesystem::exists(dir.path("logs/job-driver-raysubmit_1.log.2")));
  EXPECT_FALSE(std::filesystem::exists(dir.path("logs/job-driver-raysubmit_1.log.3")));
  jobs->remove_log("raysubmit_1");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path("logs")));
  EXPECT_EQ(jobs->read_log("raysubmit_1", 0, 10).error().code, Code::kNotFound);
}

TEST_F(JobProcessesTest, TheEndIsToldWithAllThatWasWritten) {
  ASSERT_TRUE(jobs->start(
      job("head -c 700000 /dev/zero | tr '\\0' x; echo; echo the last line; exit 1"), {}));
  siginfo_t info;
  // When the process has ended, more output is in the pipe than one turn of the loop reads.
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(reports[0].pid()), &info, WEXITED | WNOWAIT), 0);
  ASSERT_TRUE(await_reports(2));
  EXPECT_TRUE(reports[1].message().ends_with("xxx\nthe last line\n"))
      << reports[1].message().substr(0, 200);
}

TEST_F(JobProcessesTest, ProcessesOutsideTheGroupKeepWriting) {
  const std::string leave = fmt::format(
      "cd {}; setsid sh -c 'touch left; while [ ! -e go ]; do sleep 0.02; done; echo later; touch "
      "end' & while [ ! -e left ]; do sleep 0.02; done",
      dir.root());
  auto written = [this] { return std::filesystem::exists(dir.path("end")); };
  ASSERT_TRUE(jobs->start(job(leave), {}));
  ASSERT_TRUE(await_reports(2));
  std::ofstream(dir.path("go")) << "go";
  ASSERT_TRUE(driver.run_until(written));
  ASSERT_TRUE(driver.run_until(
      [&] { return jobs->read_log("raysubmit_1", 0, 1000)->data.ends_with("\nlater\n"); }));
  // A process that outlives its job's log is neither killed nor blocked when it writes.
  for (const char* name : {"left", "go", "end"}) std::filesystem::remove(dir.path(name));
  ASSERT_TRUE(jobs->start(job(leave, "removed"), {}));
  ASSERT_TRUE(await_reports(4));
  jobs->remove_log("removed");
  std::ofstream(dir.path("go")) << "go";
  EXPECT_TRUE(driver.run_until(written));
  EXPECT_FALSE(std::filesystem::exists(dir.path("logs/job-driver-removed.log")));
}

TEST_F(JobProcessesTest, ALogIsNotRemovedUnderItsJob) {
  ASSERT_TRUE(jobs->start(job("echo here; sleep 1000"), {}));
  ASSERT_TRUE(driver.run_until(
      [&] { return jobs->read_log("raysubmit_1", 0, 1000)->data.ends_with("here\n"); }));
  jobs->remove_log("raysubmit_1");
  EXPECT_TRUE(jobs->read_log("raysubmit_1", 0, 1000));
  jobs->stop("raysubmit_1");
  ASSERT_TRUE(await_reports(2));
}

TEST_F(JobProcessesTest, BadRequestsAreRefused) {
  auto unlimited = job("true");
  unlimited.set_runtime_env_json(R"({"env_vars": {"RAY_ROTATION_BACKUP_COUNT": "many"}})");
  EXPECT_EQ(jobs->start(unlimited, {}).error().message,
            "RAY_ROTATION_BACKUP_COUNT is 'many', but must be a whole number, 0 or more");
  auto unclear = job("true");
  unclear.set_runtime_env_json(R"({"env_vars": {"RAY_JOB_STOP_SIGNAL": "SIGHUP"}})");
  EXPECT_NE(jobs->start(unclear, {}).error().message.find("SIGTERM or SIGINT"), std::string::npos);
  EXPECT_EQ(jobs->start(job("true", "a/b"), {}).error().code, Code::kInvalid);
  EXPECT_EQ(jobs->start(job(""), {}).error().code, Code::kInvalid);
  auto with_env = job("true");
  with_env.set_runtime_env_json("[]");
  EXPECT_EQ(jobs->start(with_env, {}).error().code, Code::kInvalid);
  with_env.set_runtime_env_json("{\"env_vars\": {\"A\": 1}}");
  EXPECT_EQ(jobs->start(with_env, {}).error().code, Code::kInvalid);
}

TEST_F(JobProcessesTest, VariablesOfItsEnvironmentAreSet) {
  auto with_env = job("echo $COLOUR");
  with_env.set_runtime_env_json(R"({"env_vars": {"COLOUR": "dark ${SHADE}"}})");
  ASSERT_TRUE(jobs->start(with_env, {{"SHADE", "red"}}));
  ASSERT_TRUE(await_reports(2));
  EXPECT_EQ(jobs->read_log("raysubmit_1", 0, 100)->data,
            "Running entrypoint for job raysubmit_1: echo $COLOUR\ndark red\n");
}

TEST(EnvVars, MayReferToTheEnvironment) {
  std::map<std::string, std::string> env = {{"GIVEN", "here"}};
  EXPECT_EQ(expand_variables("a ${GIVEN} b ${NO_SUCH_VARIABLE}c ${open", env), "a here b c ${open");
  EXPECT_EQ(expand_variables("$GIVEN/$NO_SUCH_VARIABLE $ 5$", env), "here/$NO_SUCH_VARIABLE $ 5$");
  EXPECT_EQ((*env_vars_of(R"({"env_vars":{"X":"${GIVEN}:more"},"config":{}})", env))["X"],
            "here:more");
  EXPECT_EQ(
      (*env_vars_of(R"({"env_vars":{"Y":"${X}+","X":"$GIVEN","GIVEN":"${GIVEN}/own","A":"${X}"}})",
                    env)),
      (std::map<std::string, std::string>{
          {"A", ""}, {"GIVEN", "here/own"}, {"X", "here/own"}, {"Y", "here/own+"}}));
  EXPECT_NE(
      env_vars_of(R"({"working_dir":"gcs://a.zip"})", env).error().message.find("working_dir"),
      std::string::npos);
  EXPECT_EQ(env_vars_of("rubbish", env).error().code, Code::kInvalid);
  EXPECT_EQ(env_vars_of(R"({"env_vars":{"X":1}})", env).error().code, Code::kInvalid);
  for (const char* no_variable :
       {R"({"":"a"})", R"({"A=B":"a"})", R"({"A\u0000":"a"})", R"({"A":"a\u0000"})"}) {
    EXPECT_EQ(env_vars_of(std::string(R"({"env_vars":)") + no_variable + "}", env).error().code,
              Code::kInvalid)
        << no_variable;
  }
}

class SpawnTest : public ProcessTest {};

TEST_F(SpawnTest, FailuresNameWhatFailed) {
  SpawnOptions options;
  options.argv = {"/no/such/program"};
  auto result = spawn_process(options);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("/no/such/program"), std::string::npos);
  options.argv = {"/bin/true"};
  options.cwd = "/no/such/directory";
  EXPECT_FALSE(spawn_process(options));
}

TEST_F(SpawnTest, AReusedIdIsNotSignalled) {
  SpawnOptions options;
  options.argv = {"/bin/sleep", "1000"};
  auto process = spawn_process(options);
  ASSERT_TRUE(process);
  int status = -1;
  reaper.watch(process->pid, [&](int s) { status = s; });
  EXPECT_FALSE(signal_process({process->pid, process->start_time + 1}, SIGKILL));
  EXPECT_TRUE(signal_process(*process, SIGKILL));
  ASSERT_TRUE(driver.run_until([&] { return status != -1; }));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_FALSE(signal_process(*process, SIGKILL));
}

TEST_F(SpawnTest, AProgramIsExecutedAfterWhatComesBefore) {
  const std::string file = dir.path("executed");
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "echo > " + file};
  options.before_exec = [&](int pid) -> Status {
    // It is this program still.
    EXPECT_EQ(std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid)),
              std::filesystem::read_symlink("/proc/self/exe"));
    return {};
  };
  auto process = spawn_process(options);
  ASSERT_TRUE(process);
  int status = -1;
  reaper.watch(process->pid, [&](int s) { status = s; });
  ASSERT_TRUE(driver.run_until([&] { return status != -1; }));
  EXPECT_EQ(::access(file.c_str(), F_OK), 0);
}

TEST_F(SpawnTest, AProgramIsNotExecutedAfterAFailure) {
  const std::string file = dir.path("executed");
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "echo > " + file};
  int child = 0;
  options.before_exec = [&](int pid) -> Status {
    child = pid;
    return make_error(Code::kInvalid, "not this one");
  };
  auto process = spawn_process(options);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().message, "not this one");
  EXPECT_EQ(process_start_time(child), 0u);
  EXPECT_NE(::access(file.c_str(), F_OK), 0);
}

// Even one that outlives its parent.
TEST_F(SpawnTest, AProgramIsNotExecutedWhenTheParentEndsMeanwhile) {
  const std::string file = dir.path("executed");
  become_subreaper();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    SpawnOptions options;
    options.argv = {"/bin/sh", "-c", "echo > " + file};
    options.outlives_parent = true;
    options.before_exec = [&](int pid) -> Status {
      ::_exit(::write(ends[1], &pid, sizeof pid) == sizeof pid ? 0 : 1);
    };
    (void)spawn_process(options);
    ::_exit(1);
  }
  int child = 0, status = -1;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 127);
  EXPECT_NE(::access(file.c_str(), F_OK), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace rt::node
