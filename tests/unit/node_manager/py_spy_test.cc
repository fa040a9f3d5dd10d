// Running py-spy, with scripts in the place of py-spy and sudo: the message for each outcome, and
// that no process or file is left.
#include "daemons/node_manager/process/py_spy.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "process_fixture.h"

namespace rt::node {
namespace {

using proto::PySpyReply;

class PySpyTest : public ProcessTest {
 protected:
  PySpyTest() {
    std::filesystem::create_directories(dir.path("bin"));
    std::filesystem::create_directories(dir.path("venv/bin"));
    ::setenv("PATH", (dir.path("bin") + ":/usr/bin:/bin").c_str(), 1);
  }
  ~PySpyTest() override { ::setenv("PATH", before.c_str(), 1); }

  void program(const std::string& name, const std::string& text) {
    std::ofstream(dir.path(name)) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(dir.path(name), std::filesystem::perms::owner_all);
  }
  PySpyReply run(bool is_root = false, int duration_s = 0) {
    PySpy py_spy(loop(), reaper, {dir.path("logs"), dir.path("venv/bin/python"), is_root});
    proto::PySpyRequest request;
    request.set_pid(42);
    request.set_duration_s(duration_s);
    request.set_format("raw");
    std::optional<PySpyReply> answer;
    py_spy.run(request, [&](const PySpyReply& reply) { answer = reply; });
    EXPECT_TRUE(driver.run_until([&] { return answer.has_value(); }));
    EXPECT_TRUE(std::filesystem::is_empty(dir.path("logs")));
    return answer.value_or(PySpyReply());
  }

  std::string before = std::getenv("PATH");
};

constexpr char kDenied[] = "echo 'Permission Denied: try as root' >&2; exit 1";

TEST_F(PySpyTest, IsFoundOnPathOrBesideTheInterpreter) {
  EXPECT_EQ(run().outcome(), PySpyReply::NOT_INSTALLED);
  program("venv/bin/py-spy", "echo beside $@");
  EXPECT_EQ(run().output(), "beside dump --pid 42\n");
  program("bin/py-spy", "echo on path $@");
  EXPECT_EQ(run().output(), "on path dump --pid 42\n");
}

TEST_F(PySpyTest, ARecordIsWhatItWroteIntoTheFile) {
  program("bin/py-spy", "echo progress; echo \"$1 $6 $7\" > \"$5\"");
  EXPECT_EQ(run(false, 3).output(), "record --format raw\n");
}

TEST_F(PySpyTest, SudoHelpsWhenItAsksForNoPassword) {
  program("bin/py-spy", std::string("[ \"$ROOT\" = yes ] && echo as root $@ && exit; ") + kDenied);
  program("bin/sudo", "[ $1 = -n ] && shift && ROOT=yes exec \"$@\"");
  EXPECT_EQ(run().output(), "as root dump --pid 42\n");
  // A root that may not trace processes is not helped by sudo.
  EXPECT_EQ(run(true).outcome(), PySpyReply::NOT_PERMITTED);
}

TEST_F(PySpyTest, WithoutRightsItSaysSo) {
  program("bin/py-spy", kDenied);
  program("bin/sudo", "echo 'sudo: a password is required' >&2; exit 1");
  auto answer = run();
  EXPECT_EQ(answer.outcome(), PySpyReply::NOT_PERMITTED);
  EXPECT_EQ(answer.message(), "py-spy: sudo: a password is required");
}

TEST_F(PySpyTest, OtherFailuresAreToldInItsWords) {
  program("bin/py-spy",
          "echo 'Error: no such process' >&2; echo 'Stack backtrace: 0: main' >&2; exit 3");
  auto answer = run();
  EXPECT_EQ(answer.outcome(), PySpyReply::FAILED);
  EXPECT_EQ(answer.message(), "py-spy: Error: no such process");
  program("bin/py-spy", "exit 3");
  EXPECT_EQ(run().message(), "py-spy: it ended with exit code 3");
}

TEST_F(PySpyTest, WhatRunsEndsWithIt) {
  program("bin/py-spy", "echo $$ > " + dir.path("pid") + "; exec sleep 1000");
  bool answered = false;
  {
    PySpy py_spy(loop(), reaper, {dir.path("logs"), dir.path("venv/bin/python"), false});
    proto::PySpyRequest request;
    py_spy.run(request, [&](const PySpyReply&) { answered = true; });
    ASSERT_TRUE(driver.run_until([&] {
      return std::filesystem::exists(dir.path("pid")) &&
             std::filesystem::file_size(dir.path("pid")) > 0;
    }));
  }
  int pid = 0;
  std::ifstream(dir.path("pid")) >> pid;
  EXPECT_TRUE(driver.run_until([&] { return ::kill(pid, 0) != 0; }));
  EXPECT_FALSE(answered);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path("logs")));
}

}  // namespace
}  // namespace rt::node
