// The parts that every daemon's main() uses: flags, the token, exit codes and systemd
// notifications.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/base/fd.h"
#include "common/base/log.h"
#include "launch/daemon/flags.h"
#include "launch/daemon/notify.h"
#include "launch/daemon/process.h"
#include "tests/unit/common/loop_driver.h"

namespace rt::daemon {
namespace {

using ::testing::HasSubstr;

Result<bool> parse(std::vector<std::string> words, Flags& flags,
                   const std::vector<Flag>& own = {}) {
  words.insert(words.begin(), "ray-test");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_flags(static_cast<int>(argv.size()), argv.data(), "test", own, flags);
}

TEST(DaemonFlags, ADaemonsOwnFlagsFillItsVariables) {
  Flags flags;
  std::string text = "as before", other = "as before";
  int number = 1;
  bool yes = true, given = false, not_given = false;
  std::optional<int64_t> bytes, none;
  const std::vector<Flag> own = {{"text", &text, "TEXT", ""},    {"other", &other, "TEXT", ""},
                                 {"number", &number, "N", ""},   {"yes", &yes, "BOOL", ""},
                                 {"given", &given, "", ""},      {"not-given", &not_given, "", ""},
                                 {"bytes", &bytes, "BYTES", ""}, {"none", &none, "BYTES", ""}};
  auto start =
      parse({"--text", "a", "--number=-2", "--yes=false", "--given", "--bytes", "5000000000"},
            flags, own);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(text, "a");
  EXPECT_EQ(other, "as before");
  EXPECT_EQ(number, -2);
  EXPECT_FALSE(yes);
  EXPECT_TRUE(given);
  EXPECT_FALSE(not_given);
  EXPECT_EQ(bytes, 5000000000);
  EXPECT_EQ(none, std::nullopt);
  auto bad = parse({"--bytes", "many"}, flags, own);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr("--bytes"));
}

TEST(DaemonFlags, SettingsAreFlagsWithDashes) {
  Flags flags;
  auto start = parse({"--session-dir", "/s", "--lifeline-fd=7", "--connect-timeout-ms=250"}, flags);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_TRUE(*start);
  EXPECT_EQ(flags.session_dir, "/s");
  EXPECT_EQ(flags.lifeline_fd, 7);
  EXPECT_EQ(flags.settings, (std::map<std::string, std::string>{{"connect_timeout_ms", "250"}}));
}

TEST(DaemonFlags, WhatIsNotAFlagIsAnError) {
  for (const char* word : {"--no-such-flag", "--session", "stray", "--lifeline-fd=x"}) {
    Flags flags;
    auto start = parse({word}, flags);
    ASSERT_FALSE(start) << word;
    EXPECT_EQ(start.error().code, Code::kInvalid) << word;
    EXPECT_THAT(start.error().message, HasSubstr("--help")) << word;
  }
}

class DaemonEnvironment : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"RAY_AUTH_TOKEN", "RAY_AUTH_MODE", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
      ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(DaemonEnvironment, TheTokenFileWinsThenTheMode) {
  test::TempDir directory;
  Flags flags;
  EXPECT_THAT(read_token(flags).error().message, HasSubstr("RAY_AUTH_TOKEN"));
  ::setenv("RAY_AUTH_TOKEN", "from-environment", 1);
  EXPECT_EQ(*read_token(flags), "from-environment");
  ::setenv("RAY_AUTH_MODE", "disabled", 1);
  EXPECT_EQ(*read_token(flags), "");
  flags.token_file = directory.path("token");
  EXPECT_THAT(read_token(flags).error().message, HasSubstr(flags.token_file));
  std::ofstream(flags.token_file) << "\n";
  EXPECT_THAT(read_token(flags).error().message, HasSubstr("it is empty"));
  std::ofstream(flags.token_file) << "from-file\n";
  EXPECT_EQ(*read_token(flags), "from-file");
  std::ofstream(flags.token_file) << "\x7f"
                                     "ELF\xff\n";
  EXPECT_THAT(read_token(flags).error().message,
              testing::AllOf(HasSubstr(flags.token_file), HasSubstr("bytes that no token has")));
  flags.token_file = "/dev/zero";
  EXPECT_THAT(read_token(flags).error().message, HasSubstr("/dev/zero: cannot be read: it has"));
}

// A daemon's log in a session directory. The end of the test sends the log back to stderr.
class DaemonLog : public ::testing::Test {
 protected:
  DaemonLog() { flags_.session_dir = directory_.path("session"); }
  ~DaemonLog() override { init_log(LogOptions()); }
  Status start() { return start_log(flags_, Settings(), "test"); }
  std::string session() const { return flags_.session_dir; }
  std::string log() const { return session() + "/logs/test.log"; }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  test::TempDir directory_;
  Flags flags_;
};

TEST_F(DaemonLog, IsForItsOwnerOnly) {
  using std::filesystem::perms;
  ASSERT_TRUE(start());
  RT_INFO("a line");
  EXPECT_THAT(content(log()), HasSubstr("a line"));
  for (const std::string& path : {session(), session() + "/logs"})
    EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_all) << path;
  EXPECT_EQ(std::filesystem::status(log()).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(DaemonLog, FollowsNoLink) {
  const std::string elsewhere = session() + "/elsewhere";
  std::filesystem::create_directories(session() + "/logs");
  std::ofstream(elsewhere) << "kept";
  std::filesystem::create_symlink(elsewhere, log());
  ASSERT_TRUE(start());
  RT_INFO("a line for stderr");
  EXPECT_EQ(content(elsewhere), "kept");
}

TEST_F(DaemonLog, IsNotPutIntoADirectoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  std::filesystem::create_directories(session() + "/logs");
  for (const std::string& path : {session() + "/logs", session()}) {
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    auto started = start();
    ASSERT_FALSE(started) << path;
    EXPECT_THAT(started.error().message,
                testing::AllOf(HasSubstr(path + " for"), HasSubstr("(uid 65534)"),
                               HasSubstr("--session-dir")));
  }
  EXPECT_FALSE(std::filesystem::exists(log()));
}

// Binds a datagram socket at `name`, which has the form of $NOTIFY_SOCKET: a path, or "@" and an
// abstract name.
Fd notify_socket(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = 0;
  Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  return fd;
}

std::string next_message(const Fd& fd) {
  char text[256];
  ssize_t n = ::recv(fd.get(), text, sizeof text, MSG_DONTWAIT);
  return n < 0 ? "" : std::string(text, static_cast<size_t>(n));
}

TEST_F(DaemonEnvironment, NoticesGoToPathsAndAbstractNamesAndAreNotForChildren) {
  test::TempDir directory;
  for (const std::string& name :
       {directory.path("notify"), "@ray-daemon-test-" + std::to_string(::getpid())}) {
    Fd listening = notify_socket(name);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    Notifier notifier;
    EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
    notifier.ready();
    notifier.ready("at\nREADY=0");
    notifier.status("one line");
    notifier.stopping("received signal 15");
    for (const char* expected : {"READY=1", "READY=1\nSTATUS=at READY=0", "STATUS=one line",
                                 "STOPPING=1\nSTATUS=received signal 15", ""})
      EXPECT_EQ(next_message(listening), expected);
    EXPECT_EQ(notifier.keep_alive_us(), 0);
  }
  Notifier().ready();  // Does nothing: $NOTIFY_SOCKET is not set.
}

TEST_F(DaemonEnvironment, AWatchdogIsMeantForOneProcess) {
  struct Case {
    const char *socket, *usec;
    int64_t pid;
    int64_t expected_us;
  };
  for (const Case& c :
       {Case{"@x", "3000000", ::getpid(), 1'500'000}, Case{"@x", "3000000", 0, 1'500'000},
        Case{"@x", "3000000", ::getppid(), 0}, Case{"@x", "soon", 0, 0}, Case{"@x", "-3", 0, 0},
        Case{"", "3000000", 0, 0}}) {
    ::setenv("NOTIFY_SOCKET", c.socket, 1);
    ::setenv("WATCHDOG_USEC", c.usec, 1);
    if (c.pid != 0) ::setenv("WATCHDOG_PID", std::to_string(c.pid).c_str(), 1);
    EXPECT_EQ(Notifier().keep_alive_us(), c.expected_us) << c.usec << " " << c.pid;
    EXPECT_EQ(std::getenv("WATCHDOG_USEC"), nullptr);
    EXPECT_EQ(std::getenv("WATCHDOG_PID"), nullptr);
  }
}

// A daemon and its starter. ending() turns the loop until the daemon ends, or for so many turns,
// and returns the reason.
struct StarterPipe {
  StarterPipe() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    flags.starter_fd = ends[0];
    starter.reset(ends[1]);
  }
  std::string ending(int turns) {
    std::string said;
    EndWatch watch(loop, flags, [&](const std::string& why) { said = why; });
    for (int i = 0; i < turns && said.empty(); ++i) {
      loop.run_after(500, [&] { loop.stop(); });
      loop.run();
    }
    // This runs after everything that the watch has posted.
    loop.run_after(0, [&] { loop.stop(); });
    loop.run();
    return said;
  }
  net::AsioLoop loop;
  Flags flags;
  Fd starter;
};

TEST(DaemonEnds, AStarterThatEndsBeforeItLetsGoEndsTheDaemon) {
  StarterPipe pipe;
  pipe.starter.reset();
  EXPECT_THAT(pipe.ending(10'000), HasSubstr("before the node was recorded"));
}

TEST(DaemonEnds, AStarterThatLetGoMayEnd) {
  StarterPipe pipe;
  Fd of_another_daemon(::dup(pipe.flags.starter_fd));
  ASSERT_EQ(::write(pipe.starter.get(), "", 1), 1);
  pipe.starter.reset();
  EXPECT_EQ(pipe.ending(20), "");
  char byte = 1;
  EXPECT_EQ(::read(of_another_daemon.get(), &byte, 1), 1) << "the byte is for every daemon";
}

TEST_F(DaemonEnvironment, KeepAlivesComeFromTheLoopOnly) {
  test::TempDir directory;
  Fd listening = notify_socket(directory.path("notify"));
  ::setenv("NOTIFY_SOCKET", directory.path("notify").c_str(), 1);
  ::setenv("WATCHDOG_USEC", "2000", 1);
  Notifier notifier;
  test::LoopDriver driver(test::LoopKind::kAsio);
  {
    KeepAlive alive(driver.loop(), notifier);
    EXPECT_EQ(next_message(listening), "WATCHDOG=1");
    // A loop that does not turn sends no keep-alive, however long that lasts.
    EXPECT_EQ(next_message(listening), "");
    EXPECT_TRUE(driver.run_until([&] { return next_message(listening) == "WATCHDOG=1"; }));
    EXPECT_TRUE(driver.run_until([&] { return next_message(listening) == "WATCHDOG=1"; }));
  }
  while (!next_message(listening).empty()) {}
  bool passed = false;
  driver.loop().run_after(10'000, [&] { passed = true; });
  driver.run_until([&] { return passed; });
  EXPECT_EQ(next_message(listening), "");  // The keep-alives have ended with their owner.
}

TEST(DaemonExitCode, TellsMistakesFromFailures) {
  for (Code code : {Code::kInvalid, Code::kUnauthenticated, Code::kWrongVersion})
    EXPECT_EQ(exit_code_of(make_error(code, "")), 2);
  for (Code code :
       {Code::kUnavailable, Code::kTimeout, Code::kIo, Code::kWrongCluster, Code::kNodeDied})
    EXPECT_EQ(exit_code_of(make_error(code, "")), 1);
}

}  // namespace
}  // namespace rt::daemon
