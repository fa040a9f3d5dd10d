// The files and variables through which programs find a cluster and its token, and which of them
// are trusted.
#include <sys/stat.h>

#include <thread>

#include "common/net/address.h"
#include "tests/unit/launch/fixture.h"

namespace rt::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string message_of(const Result<std::string>& result) {
  return result ? "no error: " + *result : result.error().message;
}

// The text of a node_<id>.json that names the test's own process, as `rayctl start` would write
// it.
std::string node_record_of_this_process(const std::string& session) {
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string start_time;
  for (int field = 3; field <= 22; ++field) fields >> start_time;
  return "{\"session_dir\": \"" + session +
         R"(", "session_name": "s", "head_address": "127.0.0.1:1", "node_ip": "127.0.0.1", "node_manager_port": 1, "node_manager_socket": "",
    "object_store_socket": "", "node_id": "1", "processes": [{"name": "x", "pid": )" +
         std::to_string(getpid()) + R"(, "start_time": )" + start_time + "}]}";
}

TEST_F(LaunchTest, AddressesComeFromTheOptionTheEnvironmentOrTheFile) {
  EXPECT_THAT(message_of(resolve_address("")),
              AllOf(HasSubstr("no cluster found"), HasSubstr("rayctl start --head")));
  auto listener = net::listen_on(net::Address::tcp("127.0.0.1", 0));
  std::string here = "127.0.0.1:" + std::to_string(*net::bound_port(*listener));
  std::filesystem::create_directory(root());
  std::ofstream(root() + "/ray_current_cluster") << here << "\n";
  EXPECT_EQ(*resolve_address(""), here);
  set("RAY_ADDRESS", "10.1.2.3:1234");
  EXPECT_EQ(*resolve_address(""), "10.1.2.3:1234");
  EXPECT_EQ(*resolve_address("auto"), here);
  EXPECT_EQ(*resolve_address("10.9.9.9:6379"), "10.9.9.9:6379");
  close(*listener);
  EXPECT_THAT(message_of(resolve_address("auto")), AllOf(HasSubstr(here), HasSubstr("has ended")));
}

TEST_F(LaunchTest, AClusterThatAProgramStartedForItselfIsFoundWhileItLives) {
  auto older = net::listen_on(net::Address::tcp("127.0.0.1", 0)),
       newer = net::listen_on(net::Address::tcp("127.0.0.1", 0));
  auto address = [](int fd) { return "127.0.0.1:" + std::to_string(*net::bound_port(fd)); };
  std::string first = root() + "/session_2025-01-01_00-00-00_000000_1",
              second = root() + "/session_2026-01-01_00-00-00_000000_2";
  for (const auto& [session, fd] : {std::pair(first, *older), std::pair(second, *newer)}) {
    std::filesystem::create_directories(session);
    std::ofstream(session + "/head_address") << address(fd) << "\n";
  }
  std::filesystem::create_directory(root() + "/session_2027-01-01_00-00-00_000000_3");
  EXPECT_EQ(*running_cluster(root()), address(*newer));
  EXPECT_EQ(*resolve_address("auto"), address(*newer));
  auto started = net::listen_on(net::Address::tcp("127.0.0.1", 0));
  std::ofstream(root() + "/ray_current_cluster") << address(*started) << "\n";
  EXPECT_EQ(*running_cluster(root()), address(*started)) << "what an operator started comes first";
  close(*started);
  EXPECT_EQ(*running_cluster(root()), address(*newer)) << "a stale file hides nothing";
  close(*newer);
  EXPECT_EQ(*running_cluster(root()), address(*older));
  close(*older);
  EXPECT_THAT(message_of(running_cluster(root())), HasSubstr("has ended"));
}

TEST_F(LaunchTest, BadAddressesAreNamed) {
  EXPECT_THAT(message_of(resolve_address("localhost")),
              AllOf(HasSubstr("--address"), HasSubstr("localhost")));
  EXPECT_THAT(message_of(resolve_address("host:0")), HasSubstr("1 to 65535"));
  EXPECT_THAT(message_of(resolve_address("host:99999")), HasSubstr("--address"));
  EXPECT_THAT(message_of(resolve_address("ray://host:1")), HasSubstr("HOST:PORT or auto"));
  std::filesystem::create_directory(root());
  std::ofstream(root() + "/ray_current_cluster") << "gibberish";
  EXPECT_THAT(message_of(resolve_address("")), HasSubstr("does not name a cluster"));
}

TEST_F(LaunchTest, TheTokenIsMadeOncePrivatelyAndSharedByAll) {
  EXPECT_THAT(message_of(auth_token(false)), HasSubstr("no cluster token"));
  std::vector<std::string> tokens(8);
  {
    std::vector<std::jthread> threads;
    for (auto& token : tokens) threads.emplace_back([&token] { token = *auth_token(true); });
  }
  for (const auto& token : tokens) EXPECT_EQ(token, tokens[0]);
  EXPECT_EQ(tokens[0].size(), 64u);
  struct stat info;
  ASSERT_EQ(stat((home() + "/.ray/auth_token").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  int entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(home() + "/.ray"))
    entries += entry.exists();
  EXPECT_EQ(entries, 1) << "a draft is left";
  EXPECT_EQ(*auth_token(false), tokens[0]);
}

TEST_F(LaunchTest, TheTokenCanBeGivenOrTurnedOff) {
  std::ofstream(home() + "/token") << "  secret \nsecond line\n";
  set("RAY_AUTH_TOKEN_PATH", home() + "/token");
  EXPECT_EQ(*auth_token(false), "secret");
  set("RAY_AUTH_TOKEN", "other");
  EXPECT_EQ(*auth_token(false), "other");
  set("RAY_AUTH_MODE", "disabled");
  EXPECT_EQ(*auth_token(true), "");
  set("RAY_AUTH_MODE", "maybe");
  EXPECT_THAT(message_of(auth_token(true)), HasSubstr("token or disabled"));
  set("RAY_AUTH_MODE", "token");
  unsetenv("RAY_AUTH_TOKEN");
  for (const char* binary : {"\x7f"
                             "ELF\x02",
                             "secret\xff", "sec\x01ret", "\xc0\xaf"}) {
    std::ofstream(home() + "/token") << binary << "\n";
    EXPECT_THAT(message_of(auth_token(false)),
                AllOf(HasSubstr(home() + "/token"), HasSubstr("bytes that no token has")))
        << binary;
    set("RAY_AUTH_TOKEN", binary);
    EXPECT_THAT(message_of(auth_token(false)),
                HasSubstr("RAY_AUTH_TOKEN holds bytes that no token has"))
        << binary;
    unsetenv("RAY_AUTH_TOKEN");
  }
  std::ofstream(home() + "/token") << "schl\xc3\xbcssel of mine\n";
  EXPECT_EQ(*auth_token(false), "schl\xc3\xbcssel of mine");
  std::ofstream(home() + "/token") << "\n";
  EXPECT_THAT(message_of(auth_token(false)), HasSubstr("is empty"));
  set("RAY_AUTH_TOKEN_PATH", home() + "/nowhere");
  EXPECT_THAT(message_of(auth_token(true)), HasSubstr("does not exist"));
}

TEST_F(LaunchTest, ATokenFileThatOthersCanWriteIsRefused) {
  std::string path = home() + "/token";
  std::ofstream(path) << "secret\n";
  set("RAY_AUTH_TOKEN_PATH", path);
  ASSERT_EQ(chmod(path.c_str(), 0660), 0);
  EXPECT_THAT(message_of(auth_token(false)), AllOf(HasSubstr(path), HasSubstr("chmod 600")));
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(*auth_token(false), "secret");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("Warning"), HasSubstr("chmod 600 " + path)));
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    EXPECT_THAT(message_of(auth_token(false)),
                AllOf(HasSubstr("uid 65534"), HasSubstr("RAY_AUTH_TOKEN_PATH")));
  }
}

TEST_F(LaunchTest, WhatIsNoTokenFileIsRefusedAlsoByPrivateClusters) {
  NodeOptions options = head();
  options.private_to_parent = true;
  set("RAY_AUTH_TOKEN_PATH", home());
  EXPECT_THAT(error_of(start(options)), AllOf(HasSubstr(home()), HasSubstr("no regular file")));
  unsetenv("RAY_AUTH_TOKEN_PATH");
  std::filesystem::create_symlink(home() + "/nowhere", home() + "/.ray");
  EXPECT_THAT(error_of(start(options)),
              AllOf(HasSubstr(home() + "/.ray is a link"), HasSubstr("remove the link")));
}

TEST_F(LaunchTest, ALivingClusterIsFoundWhenTheFileNamesAnother) {
  auto listener = net::listen_on(net::Address::tcp("127.0.0.1", 0));
  std::string address = "127.0.0.1:" + std::to_string(*net::bound_port(*listener));
  std::string session = root() + "/session_x", record = node_record_of_this_process(session);
  std::filesystem::create_directories(session);
  record.replace(record.find("127.0.0.1:1"), 11, address);
  std::ofstream(session + "/node_1.json") << record;
  EXPECT_EQ(message_of(resolve_address("")), "no error: " + address)
      << "another cluster's end took the file along";
  std::ofstream(root() + "/ray_current_cluster") << "127.0.0.1:1";
  EXPECT_EQ(*resolve_address("auto"), address) << "what the file names has ended";
  close(*listener);
  EXPECT_THAT(message_of(resolve_address("")), HasSubstr("has ended"));
}

TEST_F(LaunchTest, DaemonsAreFoundOrTheErrorSaysWhereTheyWereLookedFor) {
  EXPECT_EQ(*daemon_path("ray-head"), home() + "/bin/ray-head");
  EXPECT_THAT(message_of(daemon_path("ray-nothing")),
              AllOf(HasSubstr("ray-nothing"), HasSubstr("RAY_BIN")));
}

TEST_F(LaunchTest, TheLastWordsOfALargeLogAreAtItsEnd) {
  StartedNode node;
  node.session_dir = home();
  std::filesystem::create_directory(home() + "/logs");
  const std::string log = home() + "/logs/ray-head.err";
  std::ofstream(log) << "the beginning\n";
  std::filesystem::resize_file(log, 65u << 20);
  std::ofstream(log, std::ios::app) << "\nthe reason\nEND\n";
  EXPECT_EQ(last_words(node, "ray-head"), "It said:\nthe reason\nEND");
  std::ofstream(log) << "first\nlast\n\n";
  EXPECT_EQ(last_words(node, "ray-head"), "It said:\nfirst\nlast");
}

TEST_F(LaunchTest, ForeignRecordsAreSkipped) {
  std::filesystem::create_directories(root() + "/session_x");
  std::ofstream(root() + "/session_x/node_1.json") << "{not json";
  std::ofstream(root() + "/session_x/node_2.json") << R"({"session_dir": 5})";
  EXPECT_TRUE(recorded_nodes(root()).empty());
  EXPECT_TRUE(recorded_nodes(root() + "/nowhere").empty());
}

TEST_F(LaunchTest, SocketsAtWhichNobodyListensAreRemoved) {
  const std::string sockets = root() + "/session_x/sockets";
  std::filesystem::create_directories(sockets);
  auto live = net::listen_on(net::Address::unix_socket(sockets + "/raylet"));
  auto stale = net::listen_on(net::Address::unix_socket(sockets + "/plasma_store"));
  ASSERT_TRUE(live && stale);
  close(*stale);
  forget_dead_nodes(root());
  EXPECT_TRUE(std::filesystem::exists(sockets + "/raylet"));
  EXPECT_FALSE(std::filesystem::exists(sockets + "/plasma_store"));
  close(*live);
}

TEST_F(LaunchTest, FilesOfOtherUsersInTheRootAreIgnored) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  constexpr uid_t kNobody = 65534;
  std::string session = root() + "/session_x", record = session + "/node_1.json",
              address = root() + "/ray_current_cluster";
  std::filesystem::create_directories(session);
  std::ofstream(record) << node_record_of_this_process(session);
  auto listener = net::listen_on(net::Address::tcp("127.0.0.1", 0));
  std::ofstream(address) << "127.0.0.1:" << *net::bound_port(*listener);
  EXPECT_EQ(recorded_nodes(root()).size(), 1u);
  EXPECT_THAT(message_of(resolve_address("")), HasSubstr("no error"));
  for (const auto& path : {record, address}) ASSERT_EQ(chown(path.c_str(), kNobody, kNobody), 0);
  EXPECT_TRUE(recorded_nodes(root()).empty());
  EXPECT_THAT(message_of(resolve_address("")),
              AllOf(HasSubstr("not a regular file of this user"), HasSubstr("RAY_ADDRESS")));
  close(*listener);
  ASSERT_EQ(chown(root().c_str(), kNobody, kNobody), 0);
  auto node = start(head());
  ASSERT_FALSE(node);
  EXPECT_THAT(node.error().message,
              AllOf(HasSubstr("belongs to another user (uid 65534)"), HasSubstr("RAY_TMPDIR")));
}

TEST_F(LaunchTest, FifosAndLinksInTheRootDoNotBlock) {
  std::filesystem::create_directories(root() + "/session_x");
  ASSERT_EQ(mkfifo((root() + "/session_x/node_1.json").c_str(), 0600), 0);
  std::ofstream(home() + "/elsewhere") << node_record_of_this_process(root() + "/session_x");
  std::filesystem::create_symlink(home() + "/elsewhere", root() + "/session_x/node_2.json");
  EXPECT_TRUE(recorded_nodes(root()).empty());
  ASSERT_EQ(mkfifo((root() + "/ray_current_cluster").c_str(), 0600), 0);
  EXPECT_THAT(message_of(resolve_address("")), HasSubstr("not a regular file of this user"));
}

TEST_F(LaunchTest, ARootThatAllMayWriteToIsMadeSafe) {
  std::filesystem::create_directory(root());
  ASSERT_EQ(chmod(root().c_str(), 0777), 0);
  ASSERT_TRUE(start(head()));
  struct stat info;
  ASSERT_EQ(stat(root().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01777u);
}

TEST_F(LaunchTest, EachUserHasADefaultRoot) {
  unsetenv("RAY_TMPDIR");
  EXPECT_THAT(temp_root(), ::testing::AnyOf("/tmp/ray", "/tmp/ray-" + std::to_string(geteuid())));
  EXPECT_EQ(temp_root("/given/"), "/given");
}

}  // namespace
}  // namespace rt::launch
