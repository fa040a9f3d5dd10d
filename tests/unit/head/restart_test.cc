// The ray-head program: started, killed with SIGKILL and started again, and the error messages
// with which it refuses to start.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/ids.h"
#include "tests/unit/common/free_port.h"
#include "tests/unit/head/fake_node.h"

namespace rt::head {
namespace {

using Head = proto::HeadService::Stub;

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "head_program_XXXXXX").string();
    dir = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(dir + "/session/logs");
  }
  ~ProgramTest() override {
    if (pid > 0) end(SIGKILL);
    std::filesystem::remove_all(dir);
  }

  void spawn(std::vector<std::string> arguments, bool token = true) {
    std::string notify = dir + "/notify", errors = dir + "/stderr";
    ::unlink(notify.c_str());
    notify_fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", notify.c_str());
    ASSERT_EQ(::bind(notify_fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    arguments.insert(arguments.begin(), HEAD_PROGRAM);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setenv("NOTIFY_SOCKET", notify.c_str(), 1);
      ::unsetenv("RAY_AUTH_MODE");
      token ? ::setenv("RAY_AUTH_TOKEN", "secret", 1) : ::unsetenv("RAY_AUTH_TOKEN");
      int fd = ::open(errors.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
      ::dup2(fd, 2);
      ::execv(HEAD_PROGRAM, argv.data());
      ::_exit(127);
    }
  }
  void start() {
    spawn({"--host", "127.0.0.1", "--port", std::to_string(port), "--session-dir", dir + "/session",
           "--state-dir", dir + "/state", "--node-timeout-ms", "60000", "--node-reconnect-grace-ms",
           "60000"});
    pollfd ready{notify_fd, POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 60'000), 1) << errors();
    char text[8] = "";  // Only "READY=1"; status text may follow in the same message.
    ASSERT_GT(::recv(notify_fd, text, sizeof text - 1, 0), 0);
    EXPECT_STREQ(text, "READY=1");
    ::close(notify_fd);
  }
  int end(int signal) {
    ::kill(pid, signal);
    return wait();
  }
  int wait() {
    int status = 0;
    ::waitpid(pid, &status, 0);
    pid = 0;
    return status;
  }
  std::string errors() {
    std::ifstream file(dir + "/stderr");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string dir;
  const int port = test::free_port();
  pid_t pid = 0;
  int notify_fd = -1;
};

TEST_F(ProgramTest, KilledAndStartedAgainItKnowsEverything) {
  start();
  ActorId id;
  JobId job;
  std::string cluster;
  {
    FakeNode node(port, "secret");
    auto joined = node.join();
    ASSERT_TRUE(joined) << joined.error().message;
    cluster = joined->cluster_id();
    job = JobId::from_binary(node.add_job().job_id());
    id = make_actor_id(job, 1, 1);
    proto::RegisterActorRequest request;
    request.mutable_spec()->set_actor_id(id.binary());
    request.mutable_spec()->set_job_id(job.binary());
    request.mutable_spec()->set_name("a");
    request.mutable_spec()->set_ray_namespace("ns");
    ASSERT_TRUE(node.client->call(&Head::RegisterActor, request));
    proto::GetActorRequest get;
    get.set_actor_id(id.binary());
    ASSERT_TRUE(node.run_until([&] {
      auto reply = node.client->call(&Head::GetActor, get);
      return reply && reply->actor().state() == proto::ACTOR_ALIVE;
    }));
    proto::KvPutRequest put;
    put.set_ns("fun");
    put.set_key("f");
    put.set_value("code");
    put.set_job_id(job.binary());
    // Commits keep their order, so everything before this write is durable as well.
    ASSERT_TRUE(node.client->call(&Head::KvPut, put));
    end(SIGKILL);
  }
  start();
  FakeNode node(port, "secret");
  proto::GetActorRequest by_name;
  by_name.set_name("a");
  by_name.set_ray_namespace("ns");
  auto actor = node.client->call(&Head::GetActor, by_name);
  ASSERT_TRUE(actor) << actor.error().message;
  ASSERT_TRUE(actor->found());
  EXPECT_EQ(node.client->call(&Head::GetNodes, proto::GetNodesRequest())->nodes_size(), 1);
  auto request = node.registration();
  *request.add_live_actors() = actor->actor();
  request.add_live_jobs()->set_job_id(job.binary());
  auto joined = node.client->call(&Head::RegisterNode, request);
  ASSERT_TRUE(joined) << joined.error().message << errors();
  EXPECT_EQ(joined->cluster_id(), cluster);
  EXPECT_EQ(joined->head_incarnation(), 2);
  EXPECT_EQ(joined->dead_jobs_size(), 0);
  actor = node.client->call(&Head::GetActor, by_name);
  EXPECT_EQ(actor->actor().state(), proto::ACTOR_ALIVE);
  EXPECT_EQ(actor->actor().epoch(), 1);
  proto::KvGetRequest get;
  get.set_ns("fun");
  get.set_key("f");
  EXPECT_EQ(node.client->call(&Head::KvGet, get)->value(), "code");
  EXPECT_EQ(JobId::from_binary(node.add_job().job_id()), job_id_from_int(2));
  EXPECT_TRUE(node.created.empty());
  EXPECT_TRUE(node.killed.empty());
  int status = end(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << errors();
}

TEST_F(ProgramTest, EndsWithItsLifeline) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  int inherited = ::dup(ends[0]);  // The duplicate has no close-on-exec flag.
  spawn({"--host", "127.0.0.1", "--port", "0", "--state-dir", dir + "/state", "--lifeline-fd",
         std::to_string(inherited)});
  ::close(inherited);
  ::close(ends[0]);
  ::close(ends[1]);
  int status = wait();
  ::close(notify_fd);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << errors();
}

TEST_F(ProgramTest, ComplaintsNameCauseAndRemedy) {
  auto fails = [this](std::vector<std::string> arguments, const std::string& word,
                      bool token = true) {
    spawn(std::move(arguments), token);
    ::close(notify_fd);
    int status = wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 127);
    EXPECT_NE(errors().find(word), std::string::npos) << errors();
  };
  std::string state = dir + "/state";
  fails({"--no-such-flag"}, "no-such-flag");
  fails({}, "--state-dir");
  fails({"--state-dir", state, "--port", "70000"}, "70000");
  fails({"--state-dir", state, "--cluster-id", "xyz"}, "hex");
  fails({"--state-dir", state, "--port", "0", "--node-timeout-ms", "soon"}, "node-timeout-ms");
  fails({"--state-dir", state, "--port", "0"}, "RAY_AUTH_TOKEN", false);
  int busy = *net::listen_on(net::Address::tcp("127.0.0.1", 0));
  fails({"--state-dir", state, "--host", "127.0.0.1", "--port",
         std::to_string(*net::bound_port(busy))},
        "in use");
  ::close(busy);
  std::ofstream(dir + "/file") << "x";
  fails({"--state-dir", dir + "/file", "--port", "0"}, dir + "/file");
  std::filesystem::create_directories(dir + "/bad");
  std::ofstream(dir + "/bad/head.sqlite") << std::string(8192, 'x');
  fails({"--state-dir", dir + "/bad", "--port", "0"}, "damaged");
}

}  // namespace
}  // namespace rt::head
