// Starting and stopping nodes with fake daemons: flags, records, and the errors of starts that
// fail.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "common/net/address.h"
#include "tests/unit/launch/fixture.h"

namespace rt::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(LaunchTest, AHeadNodeIsReadyRecordedAndStoppable) {
  auto node = start(head());
  ASSERT_TRUE(node) << node.error().message;
  ASSERT_EQ(node->processes.size(), 3u);
  EXPECT_EQ(content(root() + "/ray_current_cluster"), node->head_address + "\n");
  EXPECT_EQ(std::filesystem::read_symlink(root() + "/session_latest"), node->session_name);
  auto recorded = recorded_nodes(root());
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(recorded[0].node_id_hex, node->node_id_hex);
  StopResult stopped = stop_processes(recorded[0].processes, 60'000'000);
  EXPECT_EQ(stopped.found, 3);
  EXPECT_EQ(stopped.killed, 0);
  forget_node(recorded[0]);
  EXPECT_FALSE(std::filesystem::exists(root() + "/ray_current_cluster"));
  EXPECT_FALSE(std::filesystem::exists(node->node_manager_socket));
  EXPECT_THAT(recorded_nodes(root()), IsEmpty());
}

TEST_F(LaunchTest, AHeadThatEndedIsStartedAgainAtItsAddress) {
  auto node = start(head());
  ASSERT_TRUE(node) << node.error().message;
  int port = net::Address::parse(node->head_address)->port;
  EXPECT_FALSE(node_without_head(root(), port)) << "its head lives";
  EXPECT_EQ(living_head(root(), port), node->head_address);
  EXPECT_FALSE(living_head(root(), port + 1));
  stop_processes({node->processes[0]}, 0);
  EXPECT_FALSE(living_head(root(), port));
  EXPECT_FALSE(node_without_head(root(), port + 1));
  auto waiting = node_without_head(root(), port);
  ASSERT_TRUE(waiting);
  auto again = restart_head(*waiting);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->processes[0].command, node->processes[0].command);
  EXPECT_NE(again->processes[0].pid, node->processes[0].pid);
  EXPECT_FALSE(node_without_head(root(), port));
  auto recorded = recorded_nodes(root());
  ASSERT_EQ(recorded.size(), 1u);
  EXPECT_EQ(stop_processes(recorded[0].processes, 3'000'000).found, 3);
}

TEST_F(LaunchTest, AHeadThatCannotBeStartedAgainIsOneErrorAndTheNodeStays) {
  auto node = start(head());
  ASSERT_TRUE(node) << node.error().message;
  stop_processes({node->processes[0]}, 0);
  auto waiting = node_without_head(root(), net::Address::parse(node->head_address)->port);
  ASSERT_TRUE(waiting);
  set("FAKE_FAIL", "ray-head");
  EXPECT_THAT(error_of(restart_head(*waiting)),
              AllOf(HasSubstr("ray-head"), HasSubstr("the moon is in the wrong phase")));
  EXPECT_EQ(stop_processes(recorded_nodes(root())[0].processes, 3'000'000).found, 2);
}

// The names of all processes of recorded nodes, in the order of the alphabet.
std::vector<std::string> recorded_processes(const std::string& root) {
  std::vector<std::string> names;
  for (const auto& node : recorded_nodes(root)) {
    for (const auto& process : node.processes) names.push_back(process.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

const std::vector<std::string> kStarting = {"ray-head", "ray-node-manager", "ray-object-store",
                                            "rayctl start"};

void await_recorded(const std::string& root, const std::vector<std::string>& expected) {
  for (int64_t deadline = steady_now_us() + 60'000'000; steady_now_us() < deadline;) {
    if (recorded_processes(root) == expected) return;
    poll(nullptr, 0, 1);
  }
  EXPECT_EQ(recorded_processes(root), expected);
}

// Forks a process that starts a node. With FAKE_SILENT it waits for its daemons for ever.
pid_t fork_starter(const NodeOptions& options) {
  pid_t starter = fork();
  if (starter == 0) {
    (void)start_node(options);
    _exit(0);
  }
  return starter;
}

TEST_F(LaunchTest, DaemonsOfAKilledStarterAreKnownAndEnd) {
  set("FAKE_SILENT", "1");
  pid_t starter = fork_starter(head());
  ASSERT_GT(starter, 0);
  await_recorded(root(), kStarting);
  kill(starter, SIGKILL);
  waitpid(starter, nullptr, 0);
  await_recorded(root(), {});
  forget_dead_nodes(root());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root()))
    EXPECT_TRUE(entry.is_directory() || entry.path().parent_path().filename() == "logs")
        << entry.path();
}

TEST_F(LaunchTest, AStarterThatWaitsIsStoppedWithItsDaemons) {
  set("FAKE_SILENT", "1");
  ASSERT_GT(fork_starter(head()), 0);
  await_recorded(root(), kStarting);
  auto nodes = recorded_nodes(root());
  ASSERT_EQ(nodes.size(), 1u);
  StopResult stopped = stop_processes(nodes[0].processes, 60'000'000);
  EXPECT_EQ(stopped.found, 4);
  EXPECT_EQ(stopped.killed, 0);
  EXPECT_THAT(recorded_nodes(root()), IsEmpty());
}

TEST_F(LaunchTest, DaemonsGetTheirFlagsAndTheTokenByEnvironmentOnly) {
  NodeOptions options = head();
  options.resources.num_gpus = 1;
  options.resources.custom = {{"a", 1.5}};
  options.labels = {{"zone", "east"}};
  options.system_config = {{"max_workers", "7"}};
  options.resources.object_store_memory = 100 << 20;
  auto node = start(options);
  ASSERT_TRUE(node) << node.error().message;
  std::string token = *auth_token(false);
  ASSERT_EQ(token.size(), 64u);
  for (const char* name : {"ray-head", "ray-node-manager", "ray-object-store"}) {
    std::string seen = content(node->session_dir + "/logs/" + name + ".args");
    EXPECT_THAT(seen, HasSubstr("token=" + token)) << name;
    EXPECT_EQ(seen.find(token), seen.rfind(token))
        << name << " shows the token on its command line";
    EXPECT_THAT(seen, HasSubstr("--max-workers=7\n")) << name;
    EXPECT_THAT(seen, Not(HasSubstr("pipe "))) << name << " inherited what is not its own";
  }
  std::string seen = content(node->session_dir + "/logs/ray-node-manager.args");
  std::string json = seen.substr(seen.find("--resources\n") + 12);
  auto resources = nlohmann::json::parse(json.substr(0, json.find('\n')));
  EXPECT_EQ(resources["CPU"], 2.0);
  EXPECT_EQ(resources["GPU"], 1.0);
  EXPECT_EQ(resources["a"], 1.5);
  EXPECT_EQ(resources["node:127.0.0.1"], 1.0);
  EXPECT_EQ(resources["object_store_memory"], 100 << 20);
  EXPECT_GT(resources["memory"], 0);
  EXPECT_THAT(seen, HasSubstr("--labels\n{\"zone\":\"east\"}\n"));
  EXPECT_THAT(seen, HasSubstr("--head-address\n" + node->head_address + "\n"));
}

TEST_F(LaunchTest, APrivateNodeEndsWithItsLifeline) {
  NodeOptions options = head();
  options.private_to_parent = true;
  options.wait_ready = false;
  int pipe_fds[2];
  // Without close-on-exec, like the pipe of a test runner that waits for its end of file.
  ASSERT_EQ(pipe(pipe_fds), 0);
  auto node = start_node(options);
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_THAT(recorded_nodes(root()), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(root() + "/ray_current_cluster"));
  EXPECT_EQ(content(node->session_dir + "/head_address"), node->head_address + "\n");
  close(pipe_fds[1]);
  pollfd ended{pipe_fds[0], POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 0), 1) << "a daemon holds the pipe";
  close(pipe_fds[0]);
  close(node->lifeline_fd);
  for (const auto& process : node->processes)
    EXPECT_EQ(waitpid(process.pid, nullptr, 0), process.pid);
}

TEST_F(LaunchTest, APrivateClusterNeedsNoPlaceForItsToken) {
  set("HOME", home() + "/nowhere");
  EXPECT_THAT(error_of(start(head())), HasSubstr("RAY_AUTH_TOKEN_PATH"))
      << "others would have to find the token";
  NodeOptions options = head();
  options.private_to_parent = true;
  auto node = start(options);
  ASSERT_TRUE(node) << node.error().message;
  std::string seen = content(node->session_dir + "/logs/ray-head.args");
  size_t at = seen.find("token=");
  ASSERT_NE(at, std::string::npos);
  std::string token = seen.substr(at, 70);
  EXPECT_THAT(token, ::testing::MatchesRegex("token=[0-9a-f]+"));
  EXPECT_THAT(content(node->session_dir + "/logs/ray-node-manager.args"), HasSubstr(token));
  EXPECT_FALSE(std::filesystem::exists(home() + "/nowhere"));
}

TEST_F(LaunchTest, ANodeJoinsAndLeavesTheAddressFileToTheHead) {
  auto first = start(head());
  ASSERT_TRUE(first);
  NodeOptions options;
  options.address = first->head_address;
  options.node_ip = "127.0.0.1";
  auto second = start(options);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->processes.size(), 2u);
  EXPECT_EQ(recorded_nodes(root()).size(), 2u);
  stop_processes(second->processes, 3'000'000);
  forget_node(*second);
  EXPECT_EQ(content(root() + "/ray_current_cluster"), first->head_address + "\n");
}

TEST_F(LaunchTest, ThePortOfARecordedHeadIsNamedAsThat) {
  auto node = start(head());
  ASSERT_TRUE(node) << node.error().message;
  // Its node has died.
  stop_processes({node->processes.begin() + 1, node->processes.end()}, 0);
  NodeOptions options = head();
  options.port = net::Address::parse(node->head_address)->port;
  EXPECT_THAT(error_of(start(options)),
              AllOf(HasSubstr("in use"), HasSubstr("a head runs there already"),
                    HasSubstr("`rayctl start --address=" + node->head_address + "`")));
}

TEST_F(LaunchTest, ABusyPortIsOneErrorAndLeavesNothing) {
  auto busy = net::listen_on(net::Address::tcp("127.0.0.1", 0));
  ASSERT_TRUE(busy);
  NodeOptions options = head();
  options.port = *net::bound_port(*busy);
  auto node = start(options);
  EXPECT_THAT(error_of(node), AllOf(HasSubstr(std::to_string(options.port)), HasSubstr("in use"),
                                    Not(HasSubstr("--address"))));
  EXPECT_THAT(left_behind(), IsEmpty());
  close(*busy);
}

TEST_F(LaunchTest, AnAddressNobodyReachesThisMachineByIsRefused) {
  NodeOptions options = head();
  options.node_ip = "240.9.9.9";  // Reserved addresses are on no interface of any machine.
  auto node = start(options);
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code, Code::kInvalid);
  EXPECT_THAT(error_of(node),
              AllOf(HasSubstr("240.9.9.9 is on no interface"), HasSubstr("--node-ip-address")));
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(LaunchTest, ADaemonThatFailsIsNamedWithItsLastWords) {
  set("FAKE_FAIL", "ray-object-store");
  auto node = start(head());
  EXPECT_THAT(error_of(node),
              AllOf(HasSubstr("ray-object-store exited with code 1"), HasSubstr("wrong phase")));
  EXPECT_THAT(left_behind(), IsEmpty());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(LaunchTest, ADaemonThatIsKilledIsNamedWithTheSignal) {
  set("FAKE_CRASH", "ray-head");
  EXPECT_THAT(error_of(start(head())), HasSubstr("ray-head was killed by signal 9"));
}

TEST_F(LaunchTest, WithoutWaitingTheReasonIsAvailableLater) {
  set("FAKE_FAIL", "ray-node-manager");
  NodeOptions options = head();
  options.wait_ready = false;
  auto node = start(options);
  ASSERT_TRUE(node);
  std::string words;
  for (int64_t deadline = steady_now_us() + 60'000'000;
       words.empty() && steady_now_us() < deadline;)
    words = last_words(*node, "ray-node-manager");
  EXPECT_THAT(words, HasSubstr("wrong phase"));
}

TEST_F(LaunchTest, StubbornProcessesAreKilledAndRecycledIdsAreLeftAlone) {
  set("FAKE_STUBBORN", "1");
  auto node = start(head());
  ASSERT_TRUE(node);
  auto others = node->processes;
  for (auto& process : others) process.start_time += 1;  // As if the kernel had reused the ids.
  EXPECT_EQ(stop_processes(others, 0).found, 0);
  StopResult stopped = stop_processes(node->processes, 300'000);
  EXPECT_EQ(stopped.found, 3);
  EXPECT_EQ(stopped.killed, 3);
}

TEST_F(LaunchTest, EveryProcessHasTheWholeGracePeriod) {
  set("FAKE_STUBBORN", "1");
  auto node = start(head());
  ASSERT_TRUE(node);
  const int64_t grace_us = 1'500'000, before_us = steady_now_us();
  EXPECT_EQ(stop_processes(node->processes, grace_us).killed, 3);
  EXPECT_GE(steady_now_us() - before_us, grace_us);
}

TEST_F(LaunchTest, NumbersAreChecked) {
  auto error_with = [&](auto change) {
    NodeOptions options = head();
    change(options);
    auto node = start(options);
    EXPECT_TRUE(node || node.error().code == Code::kInvalid);
    return error_of(node);
  };
  EXPECT_THAT(error_with([](auto& o) { o.resources.num_cpus = -1; }),
              AllOf(HasSubstr("--num-cpus is -1"), HasSubstr("from 0 to 1000000")));
  EXPECT_THAT(error_with([](auto& o) { o.resources.num_cpus = 1e9; }), HasSubstr("--num-cpus"));
  EXPECT_THAT(error_with([](auto& o) { o.resources.num_gpus = -2; }), HasSubstr("--num-gpus"));
  EXPECT_THAT(error_with([](auto& o) { o.resources.memory = -5; }), HasSubstr("--memory is -5"));
  EXPECT_THAT(error_with([](auto& o) { o.resources.object_store_memory = 1000; }),
              AllOf(HasSubstr("--object-store-memory is 1000"), HasSubstr("78643200")));
  EXPECT_THAT(error_with([](auto& o) { o.resources.custom = {{"a", -1}}; }),
              AllOf(HasSubstr("--resources"), HasSubstr("'a'")));
  EXPECT_THAT(error_with([](auto& o) { o.resources.custom = {{"CPU", 1}}; }),
              HasSubstr("use --num-cpus"));
  EXPECT_THAT(error_with([](auto& o) { o.port = 70000; }), HasSubstr("--port is 70000"));
  EXPECT_THAT(error_with([](auto& o) { o.node_ip = "not-an-ip"; }),
              HasSubstr("--node-ip-address is 'not-an-ip'"));
  EXPECT_THAT(error_with([](auto& o) { o.system_config = {{"nonsense", "1"}}; }),
              HasSubstr("--system-config: there is no setting 'nonsense'"));
  EXPECT_THAT(error_with([](auto& o) { o.system_config = {{"max_workers", "x"}}; }),
              HasSubstr("'max_workers' in --system-config is 'x'"));
  EXPECT_THAT(error_with([](auto& o) { o.temp_dir = "relative/path"; }),
              HasSubstr("absolute path"));
  set("RAY_PYTHON", "/nonexistent");
  EXPECT_THAT(error_with([](auto&) {}), HasSubstr("RAY_PYTHON is '/nonexistent'"));
  unsetenv("RAY_PYTHON");
  EXPECT_THAT(left_behind(), IsEmpty());
}

// The word after `option` in the command of a process.
std::string value_of(const StartedProcess& process, const std::string& option) {
  const auto at = std::find(process.command.begin(), process.command.end(), option);
  return at == process.command.end() ? "" : *std::next(at);
}

TEST_F(LaunchTest, TheInterpreterIsAnAbsoluteNameWhoseLinksAreKept) {
  const auto before = std::filesystem::current_path();
  const char* path_before = getenv("PATH");
  const std::string path = path_before ? path_before : "";
  std::filesystem::create_directory(home() + "/venv");
  std::filesystem::create_symlink("/bin/sh", home() + "/venv/python-of-mine");
  std::filesystem::current_path(home());
  const std::string expected = std::filesystem::current_path().string() + "/venv/python-of-mine";
  // A directory of the same name, which comes first, is none.
  std::filesystem::create_directories(home() + "/bin/python-of-mine");
  set("PATH", "bin:venv:" + path);
  for (const char* name : {"python-of-mine", "venv/python-of-mine"}) {
    set("RAY_PYTHON", name);
    auto node = start(head());
    EXPECT_EQ(node ? value_of(node->processes[1], "--python") : error_of(node), expected) << name;
  }
  set("RAY_PYTHON", "bin/python-of-mine");
  EXPECT_THAT(error_of(start(head())), HasSubstr("Is a directory"));
  unsetenv("RAY_PYTHON");
  set("PATH", path);
  std::filesystem::current_path(before);
}

TEST_F(LaunchTest, RaySettingNamesReachTheDaemonsTranslated) {
  NodeOptions options = head();
  options.system_config = {{"health_check_period_ms", "100"},
                           {"gcs_rpc_server_reconnect_timeout_s", "7"}};
  auto node = start(options);
  ASSERT_TRUE(node) << node.error().message;
  ASSERT_EQ(node->warnings.size(), 1u);
  EXPECT_THAT(node->warnings[0], HasSubstr("health_check_period_ms"));
  EXPECT_THAT(node->warnings[0], Not(HasSubstr("reconnect")));
  bool given = false;
  for (const std::string& word : node->processes[0].command) {
    given |= word == "--head-reconnect-timeout-ms=7000";
    EXPECT_THAT(word, Not(HasSubstr("health"))) << word;
  }
  EXPECT_TRUE(given);
}

TEST_F(LaunchTest, TooFewDescriptorsAreNamedWithTheRemedy) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 40;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::string said = error_of(start(head()));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(said, HasSubstr("ulimit -n"));
}

TEST_F(LaunchTest, ALongSessionPathIsNoProblem) {
  NodeOptions options = head();
  options.temp_dir = home() + "/" + std::string(120, 'x');
  auto node = start(options);
  ASSERT_TRUE(node) << node.error().message;
}

// Runs `body` in a child process with a mount namespace of its own and expects it to return 0.
// Sets `skipped` where the kernel refuses the namespace.
void in_mount_namespace(const std::function<int()>& body, bool* skipped) {
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      _exit(77);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  *skipped = WIFEXITED(status) && WEXITSTATUS(status) == 77;
  EXPECT_TRUE(*skipped || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << "status " << status;
}

TEST_F(LaunchTest, AReadOnlyOrFullPlaceIsOneClearErrorAndLeavesNothing) {
  std::filesystem::create_directory(root());
  for (const char* options : {"ro", "size=64k"}) {
    bool read_only = options == std::string("ro");
    bool skipped = false;
    in_mount_namespace(
        [&] {
          if (mount("tmpfs", root().c_str(), "tmpfs", read_only ? MS_RDONLY : 0,
                    read_only ? nullptr : options) != 0)
            return 77;
          auto node = start_node(head());
          if (node) return 1;
          std::string message = node.error().message;
          bool clear = message.find(root()) != std::string::npos &&
                       message.find("--temp-dir") != std::string::npos &&
                       message.find(read_only ? "Read-only file system" : "No space left") !=
                           std::string::npos;
          if (!clear) fprintf(stderr, "%s\n", message.c_str());
          bool ok = clear && left_behind().empty() &&
                    node.error().code == (read_only ? Code::kIo : Code::kOutOfDisk);
          return ok ? 0 : 1;
        },
        &skipped);
    if (skipped) GTEST_SKIP() << "mount name spaces need root";
  }
}

}  // namespace
}  // namespace rt::launch
