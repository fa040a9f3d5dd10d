// What the daemons' main() share: flags, token, READY.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "common/base/fd.h"
#include "common/daemon/flags.h"
#include "common/daemon/ready.h"
#include "tests/unit/common/loop_driver.h"

namespace rt::daemon {
namespace {

using ::testing::HasSubstr;

Result<bool> parse(std::vector<std::string> words, Flags& flags) {
  words.insert(words.begin(), "ray-test");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_flags(static_cast<int>(argv.size()), argv.data(), boost::program_options::options_description("test"), flags);
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
    for (const char* name : {"RAY_AUTH_TOKEN", "RAY_AUTH_MODE", "NOTIFY_SOCKET"}) ::unsetenv(name);
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
  std::ofstream(flags.token_file) << "from-file\n";
  EXPECT_EQ(*read_token(flags), "from-file");
}

// Binds a datagram socket at a name as $NOTIFY_SOCKET gives it.
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

TEST_F(DaemonEnvironment, ReadyGoesToPathsAndAbstractNamesAndIsNotForChildren) {
  test::TempDir directory;
  for (const std::string& name : {directory.path("notify"), "@ray-daemon-test-" + std::to_string(::getpid())}) {
    Fd listening = notify_socket(name);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    ReadyNotice ready;
    EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
    ready.send();
    char text[64] = {};
    ASSERT_GT(::recv(listening.get(), text, sizeof(text) - 1, MSG_DONTWAIT), 0) << name;
    EXPECT_STREQ(text, "READY=1");
  }
  ReadyNotice().send();   // nobody asked
}

}  // namespace
}  // namespace rt::daemon
