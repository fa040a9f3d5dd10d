// Fork servers that import modules before they fork: which server serves which worker, and how
// modules that cannot be imported there, or would harm a fork, are treated. The servers are real,
// the modules are the test's.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <set>

#include "daemons/node_manager/process/fork_server_key.h"
#include "starter_fixture.h"

namespace rt::node {
namespace {

class PreloadTest : public WorkerStarterTest {
 protected:
  // Every module appends a line to the file "imports" when it is imported, before `body` runs.
  void module(const std::string& name, const std::string& body = "") {
    std::ofstream(dir.path("py/" + name + ".py"))
        << fmt::format("import os\nopen('{}', 'a').write('{}\\n')\n", dir.path("imports"), name)
        << body;
  }
  // Workers print what they were told and stay, if `stay`.
  void make_workers(bool stay) {
    make(
        fmt::format("import os, signal, sys\n"
                    "def main(args):\n"
                    "    names = ('one', 'two', 'bad', 'threads', *map('m{{}}'.format, range(6)))\n"
                    "    line = (os.getppid(), [n for n in names if n in sys.modules], "
                    "os.environ.get('LD_LIBRARY_PATH'), args.get('applied_variables'))\n"
                    // One write: the test reads the file as soon as something is in it.
                    "    os.write(1, ('%s %s %s %s\\n' % line).encode())\n"
                    "    {}\n",
                    stay ? "signal.pause()" : "return 0"));
  }
  static std::string env_of(const std::string& names, const std::string& more = "") {
    return fmt::format(R"({{"preload": [{}]{}}})", names, more);
  }
  WorkerId spawn_with(const std::string& runtime_env) {
    return spawn({proto::LANGUAGE_PYTHON, "", runtime_env});
  }
  std::string said(const WorkerId& id) {
    if (!spawned.contains(id)) return "";
    return file_tail(starter->log_path(id, spawned[id].pid, false));
  }
  // Returns the worker's line without the process id of its server, which goes to `server`.
  std::string await_line(const WorkerId& id, int* server = nullptr) {
    if (!driver.run_until([&] { return failed.contains(id) || !said(id).empty(); }))
      return "it said nothing";
    if (failed.contains(id)) return "failed: " + failed[id];
    std::string line = said(id);
    size_t space = line.find(' ');
    if (server) *server = std::stoi(line.substr(0, space));
    return line.substr(space + 1, line.size() - space - 2);
  }
  std::string imports() { return file_tail(dir.path("imports")); }
};

TEST(ForkServerKeyTest, SaysWhichServerAWorkerNeeds) {
  const std::map<std::string, std::string> env = {{"HERE", "x"}};
  auto key = [&](const std::string& json) { return fork_server_key("p", json, env); };
  const ForkServerKey plain{.python = "p", .preload = {}, .interpreter = {}, .env = {}};
  EXPECT_EQ(key(""), plain);
  EXPECT_EQ(key(R"({"env_vars": {"LD_PRELOAD": "a"}})"), plain);
  EXPECT_EQ(key(R"({"preload": []})"), plain);
  EXPECT_EQ(key(R"({"preload": ["a", "b"]})").preload, (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(key(R"({"preload": ["a", "b"]})"), key(R"({"preload": ["b", "a"]})"));
  // Variables that are read at any time are the worker's; the others make another server.
  EXPECT_EQ(key(R"({"preload": ["a"], "env_vars": {"A": "1", "PYTHONPATH": "/x"}})"),
            key(R"({"preload": ["a"]})"));
  EXPECT_EQ(key(R"({"preload": ["a"], "env_vars": {"OMP_NUM_THREADS": "3", "LD_LIBRARY_PATH":
                    "/${HERE}:$NOT_THERE_AT_ALL"}})")
                .env,
            (std::map<std::string, std::string>{{"LD_LIBRARY_PATH", "/x:$NOT_THERE_AT_ALL"},
                                                {"OMP_NUM_THREADS", "3"}}));
  // Another interpreter makes another server, also without modules. pip reads more variables.
  EXPECT_EQ(
      key(R"({"py_executable": "/x", "env_vars": {"PIP_INDEX_URL": "a", "LD_PRELOAD": "b"}})"),
      (ForkServerKey{.python = "p",
                     .preload = {},
                     .interpreter = R"({"py_executable":"/x"})",
                     .env = {{"LD_PRELOAD", "b"}}}));
  EXPECT_EQ(key(R"({"preload": ["a"], "pip": {"packages": ["x"]}, "env_vars":
                    {"PIP_INDEX_URL": "a", "B": "b"}})"),
            (ForkServerKey{.python = "p",
                           .preload = {"a"},
                           .interpreter = R"({"pip":{"packages":["x"]}})",
                           .env = {{"PIP_INDEX_URL", "a"}}}));
  // Mistakes are the worker's to tell.
  for (const char* json :
       {R"({"preload": "a"})", R"({"pip": {"packages": ["x"]}, "env_vars": 7})", R"({"pip": {}})",
        R"({"preload": [1]})", R"({"preload": ["a"], "env_vars": 7})", R"(["preload"])",
        R"({"preload": ["a"])"}) {
    EXPECT_EQ(key(json), plain) << json;
  }
  std::string many = "\"a\"";
  for (int i = 0; i < 5000; ++i) many += fmt::format(", \"m{}\"", i);
  EXPECT_EQ(key(fmt::format(R"({{"preload": [{}]}})", many)), plain)
      << "a command line has a limit";
}

TEST_F(PreloadTest, WorkersAreForkedWithTheModulesImported) {
  make_workers(false);
  module("one");
  module("two", "import threading\nt = threading.Thread(target=int)\nt.start()\nt.join()\n");
  int first = 0, second = 0, plain = 0;
  EXPECT_EQ(await_line(spawn_with(env_of(R"("one", "two")")), &first), "['one', 'two'] None None");
  EXPECT_EQ(
      await_line(spawn_with(env_of(R"("one", "two")", R"(, "env_vars": {"A": "b"})")), &second),
      "['one', 'two'] None None");
  EXPECT_EQ(await_line(spawn(), &plain), "[] None None");
  EXPECT_EQ(first, second);
  EXPECT_NE(first, plain);
  EXPECT_EQ(imports(), "one\ntwo\n");
}

TEST_F(PreloadTest, VariablesReadAtTheStartAreTheServers) {
  make_workers(false);
  module("one");
  const std::string env =
      env_of(R"("one")", R"(, "env_vars": {"LD_LIBRARY_PATH": "/a:${LD_LIBRARY_PATH}"})");
  EXPECT_EQ(await_line(spawn_with(env)), R"(['one'] /a: ["LD_LIBRARY_PATH"])");
  EXPECT_EQ(await_line(spawn_with(env_of(R"("one")"))), "['one'] None None");
}

TEST_F(PreloadTest, ModulesThatCannotBeImportedAreLeftToTheWorkers) {
  make_workers(false);
  module("one");
  module("bad", "raise ValueError('boom')\n");
  const std::string env = env_of(R"("absent", "one", "bad", "json.absent")");
  int first = 0, second = 0;
  EXPECT_EQ(await_line(spawn_with(env), &first), "['one'] None None");
  EXPECT_EQ(await_line(spawn_with(env), &second), "['one'] None None");
  EXPECT_EQ(first, second);
  // The server has begun anew, once: nothing of the failed import is left.
  EXPECT_EQ(imports(), "one\nbad\none\n");
}

TEST_F(PreloadTest, AModuleThatLeavesAThreadIsLeftToTheWorkers) {
  make_workers(false);
  module("one");
  module("threads",
         "import threading\n"
         "threading.Thread(target=threading.Event().wait, daemon=True).start()\n");
  EXPECT_EQ(await_line(spawn_with(env_of(R"("threads", "one")"))), "['one'] None None");
  EXPECT_EQ(imports(), "threads\none\n");
}

TEST_F(PreloadTest, AServerThatItsImportsEndedIsNotStartedInALoop) {
  make_workers(false);
  module("bad", "os._exit(5)\n");
  for (int i = 0; i < 3; ++i) {
    const std::string line = await_line(spawn_with(env_of(R"("bad")")));
    EXPECT_NE(line.find("while it imported the module 'bad'"), std::string::npos) << line;
    EXPECT_NE(line.find("exited with code 5"), std::string::npos) << line;
  }
  EXPECT_EQ(imports(), "bad\n");
  EXPECT_EQ(await_line(spawn()), "[] None None") << "other workers are not affected";
}

TEST_F(PreloadTest, WhatAServerSaidLastIsReadAlsoWhenItsEndIsNoticedFirst) {
  make_workers(false);
  module("bad", "os._exit(5)\n");
  // The reaper looks for ended processes before the loop reads the server's socket.
  ::raise(SIGCHLD);
  const WorkerId id = spawn_with(env_of(R"("bad")"));
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
  EXPECT_NE(await_line(id).find("while it imported the module 'bad'"), std::string::npos)
      << failed[id];
}

TEST_F(PreloadTest, AServerThatItsImportsEndedIsStartedAgainAfterAPause) {
  crash_pause_us = 300'000;
  make_workers(false);
  module("bad", "os._exit(5)\n");
  const std::string line = await_line(spawn_with(env_of(R"("bad")")));
  EXPECT_NE(line.find("while it imported the module 'bad'"), std::string::npos) << line;
  module("bad");
  ASSERT_TRUE(driver.run_until(
      [&] { return await_line(spawn_with(env_of(R"("bad")"))) == "['bad'] None None"; }));
}

TEST_F(PreloadTest, AnImportThatNobodyWaitsForIsEnded) {
  make_workers(false);
  module("bad", "import signal\nsignal.pause()\n");
  WorkerId first = spawn_with(env_of(R"("bad")")), second = spawn_with(env_of(R"("bad")"));
  ASSERT_TRUE(driver.run_until([&] { return imports() == "bad\n"; }));
  starter->kill(first);
  module("bad");
  starter->kill(second);
  ASSERT_TRUE(driver.run_until([&] { return failed.contains(first) && failed.contains(second); }));
  EXPECT_NE(failed[second].find("'bad'"), std::string::npos);
  EXPECT_EQ(await_line(spawn_with(env_of(R"("bad")"))), "['bad'] None None");
}

TEST_F(PreloadTest, TheLimitCostsTimeAndTheLeastRecentlyUsedServerGoes) {
  make_workers(true);
  std::set<int> servers;
  std::vector<WorkerId> workers;
  std::vector<int> of;
  auto env = [](size_t i) { return env_of(fmt::format("\"m{}\"", i)); };
  for (size_t i = 0; i <= kMaxSpecialServers; ++i) module(fmt::format("m{}", i));
  for (size_t i = 0; i < kMaxSpecialServers; ++i) {
    workers.push_back(spawn_with(env(i)));
    of.push_back(0);
    EXPECT_EQ(await_line(workers.back(), &of.back()), fmt::format("['m{}'] None None", i));
    servers.insert(of.back());
  }
  EXPECT_EQ(servers.size(), kMaxSpecialServers);
  // All are in use: a plain server serves the next one, whose worker imports for itself.
  EXPECT_EQ(await_line(spawn_with(env(kMaxSpecialServers))), "[] None None");
  // Two servers have no worker: the one used longer ago goes.
  for (size_t i : {size_t{2}, size_t{1}}) {
    starter->kill(workers[i]);
    ASSERT_TRUE(await_end(workers[i]));
  }
  const uint64_t started = process_start_time(of[1]);
  EXPECT_EQ(await_line(spawn_with(env(kMaxSpecialServers))),
            fmt::format("['m{}'] None None", kMaxSpecialServers));
  EXPECT_TRUE(driver.run_until([&] { return process_start_time(of[1]) != started; }));
  int again = 0;
  EXPECT_EQ(await_line(spawn_with(env(2)), &again), "['m2'] None None");
  EXPECT_EQ(again, of[2]);
}

TEST_F(PreloadTest, AServerWithoutWorkersEndsAfterAWhile) {
  idle_server_us = 50'000;
  make_workers(true);
  module("one");
  int server = 0, plain = 0;
  WorkerId with = spawn_with(env_of(R"("one")")), without = spawn();
  EXPECT_EQ(await_line(with, &server), "['one'] None None");
  EXPECT_EQ(await_line(without, &plain), "[] None None");
  const uint64_t started = process_start_time(server);
  for (const WorkerId& id : {with, without}) {
    starter->kill(id);
    ASSERT_TRUE(await_end(id));
  }
  ASSERT_TRUE(driver.run_until([&] { return process_start_time(server) != started; }));
  int other = 0;
  EXPECT_EQ(await_line(spawn_with(env_of(R"("one")")), &other), "['one'] None None");
  EXPECT_NE(other, server);
  EXPECT_EQ(await_line(spawn(), &other), "[] None None");
  EXPECT_EQ(other, plain) << "the plain server stays";
}

TEST_F(PreloadTest, AKilledServerIsReplacedOnDemand) {
  make_workers(true);
  module("one");
  become_subreaper();
  int server = 0, other = 0;
  WorkerId id = spawn_with(env_of(R"("one")"));
  EXPECT_EQ(await_line(id, &server), "['one'] None None");
  ASSERT_EQ(::kill(server, SIGKILL), 0);
  ASSERT_TRUE(await_end(id));
  EXPECT_EQ(ended[id].signal, SIGKILL);
  ASSERT_TRUE(driver.run_until(
      [&] { return await_line(spawn_with(env_of(R"("one")")), &other) == "['one'] None None"; }));
  EXPECT_NE(other, server);
  EXPECT_EQ(imports(), "one\none\n");
}

}  // namespace
}  // namespace rt::node
