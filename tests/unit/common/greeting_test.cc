// Hellos: which peers are admitted, which are refused with which message, and the hand-off of a
// connection by a node's front door.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/base/fd.h"
#include "common/net/sockets.h"
#include "common/rpc/build.h"
#include "common/rpc/frame.h"
#include "common/rpc/hello.h"
#include "tests/unit/common/rpc_fixture.h"

namespace rt::test {
namespace {

using rpc::Identity;
using Stub = EchoService::Stub;

class GreetingTest : public RpcTest {};
INSTANTIATE_TEST_SUITE_P(Loops, GreetingTest, ::testing::Values(LoopKind::kAsio, LoopKind::kPoll),
                         [](const auto& info) { return loop_name(info.param); });

TEST(BuildTest, BuildDifferencesNameTheirConsequence) {
  EXPECT_EQ(rpc::build_difference("0.1.0 Python 3.11.2", "0.1.0 Python 3.11.2"), "");
  EXPECT_EQ(rpc::build_difference("0.1.0 Python 3.11.2", "0.1.0 Python 3.11.4"),
            "Python 3.11.2 runs here, Python 3.11.4 there");
  EXPECT_NE(rpc::build_difference("0.1.0 Python 3.11.2", "0.1.0 Python 3.9.2")
                .find("3.9.2 there: functions and classes"),
            std::string::npos);
  EXPECT_EQ(rpc::build_difference("0.1.0 Python 3.11.2", "0.1.1 Python 3.11.2"),
            "release 0.1.0 runs here, release 0.1.1 there");
  EXPECT_NE(rpc::build_difference("0.1.0", "0.2.0 Python 3.11.2")
                .find("release 0.2.0 there: install the same"),
            std::string::npos);
  EXPECT_EQ(rpc::build_difference("0.1.0 Python 3.11.2", "0.1.0"), "");
  EXPECT_EQ(rpc::build_difference("0.1.0 Python 3.11.2", ""), "");
  EXPECT_LT(rpc::build_difference("0.1.0", std::string(60'000, 'x')).size(), 200u);
}

TEST_P(GreetingTest, TheTokenIsDemandedOnTcpOnly) {
  auto without = try_connect(tcp_target(), {"driver", "", "", "", ""});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, Code::kUnauthenticated);
  EXPECT_NE(
      without.error().message.find(
          "this cluster demands a token: set RAY_AUTH_TOKEN or put it into ~/.ray/auth_token"),
      std::string::npos);
  EXPECT_NE(without.error().message.find("127.0.0.1:" + std::to_string(server->port())),
            std::string::npos);
  for (const char* wrong : {"Secret", "secre", "secrets", "x"}) {
    auto refused = try_connect(tcp_target(), {"driver", "", "", wrong, ""});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, Code::kUnauthenticated);
    EXPECT_EQ(refused.error().message.find("secret"), std::string::npos) << "the token leaks";
  }
  EXPECT_TRUE(try_connect(unix_target(), {"driver", "", "", "", ""}));
  EXPECT_TRUE(try_connect(tcp_target(), {"driver", "", "", "secret", ""}));
}

TEST_P(GreetingTest, AServerWithoutTokenAsksForNone) {
  options.identity.token.clear();
  serve(options);
  EXPECT_TRUE(try_connect(tcp_target(), {"driver", "", "", "whatever", ""}));
}

TEST_P(GreetingTest, ClustersThatDifferRefuseEachOther) {
  auto other = try_connect(tcp_target(), {"driver", "", "cluster-2", "secret", ""});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kWrongCluster);
  EXPECT_TRUE(try_connect(tcp_target(), {"driver", "", "cluster-1", "secret", ""}));
  auto adopted = try_connect(tcp_target(), {"driver", "", "", "secret", ""});
  ASSERT_TRUE(adopted);
  EXPECT_EQ((*adopted)->peer().cluster_id, "cluster-1");
  // A server that does not know its cluster id yet accepts clients of every cluster.
  Identity unknown = server->identity();
  unknown.cluster_id.clear();
  server->set_identity(unknown);
  EXPECT_TRUE(try_connect(tcp_target(), {"driver", "", "cluster-2", "secret", ""}));
  server->set_identity(options.identity);
  EXPECT_FALSE(try_connect(tcp_target(), {"driver", "", "cluster-2", "secret", ""}));
}

TEST(Hello, VersionsAreCheckedBeforeAnythingElse) {
  Identity me{"head", "", "c", "secret", ""};
  proto::Hello hello = rpc::make_hello({"driver", "", "other", "wrong", ""});
  hello.set_protocol_version(rpc::kProtocolVersion + 1);
  Status status = rpc::check_hello(me, hello, false);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kWrongVersion);
  EXPECT_NE(status.error().message.find("install the same release"), std::string::npos);
  hello.set_protocol_version(rpc::kProtocolVersion);
  EXPECT_EQ(rpc::check_hello(me, hello, false).error().code, Code::kUnauthenticated)
      << "the cluster's id is not for strangers";
  proto::HelloReply reply = rpc::make_hello_reply({"head", "", "other", "", ""});
  EXPECT_EQ(rpc::check_hello_reply(me, reply).error().code, Code::kWrongCluster);
  reply.set_protocol_version(0);
  EXPECT_EQ(rpc::check_hello_reply(me, reply).error().code, Code::kWrongVersion);
}

TEST_P(GreetingTest, AHelloThatIsTooLargeIsNotSent) {
  auto refused = try_connect(tcp_target(), {"driver", "", "", "secret", std::string(100'000, 'j')});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().message.find("configuration"), std::string::npos);
}

TEST_P(GreetingTest, TooManyConnectionsAreRefusedWithTheLimit) {
  options.max_connections = 2;
  serve(options);
  auto a = connect(tcp_target());
  auto b = connect(unix_target());
  auto refused = try_connect(tcp_target(), {"driver", "", "", "secret", ""});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_NE(refused.error().message.find("max_connections"), std::string::npos);
  a->close(make_error(Code::kCancelled, ""));
  ASSERT_TRUE(driver.run_until([&] { return server->connections().size() == 1; }));
  expect_alive();
}

// Lowers the process's limit of open descriptors; a server that is made in the meantime sizes its
// own limits by it.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t descriptors) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &old_), 0);
    rlimit lowered{descriptors, old_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &lowered), 0);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &old_); }

 private:
  rlimit old_{};
};

class CrowdTest : public GreetingTest {
 protected:
  void serve_with_descriptors(rlim_t descriptors) {
    DescriptorLimit limit(descriptors);
    serve(options);
  }
  static Fd open_raw(const net::Address& address, std::string_view bytes) {
    bool is_unix = address.kind == net::Address::Kind::kUnix;
    net::SockAddr where;
    if (is_unix) {
      where = std::move(*net::unix_sockaddr(address.path));
    } else {
      EXPECT_TRUE(net::literal_sockaddr(address.host, address.port, where));
    }
    Fd fd(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), where.get(), where.size), 0);
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  static std::string frame(rpc::FrameKind kind, const google::protobuf::MessageLite& message,
                           std::string_view method = {}, uint32_t call = 0) {
    std::string body = message.SerializeAsString();
    auto size = static_cast<uint32_t>(body.size());
    rpc::FrameHeader header{.body_bytes = size,
                            .message_bytes = size,
                            .method = rpc::method_hash(method),
                            .call = call,
                            .kind = kind};
    uint8_t encoded[rpc::kHeaderBytes];
    rpc::encode_header(header, encoded);
    return std::string(reinterpret_cast<const char*>(encoded), sizeof(encoded)) + body;
  }
  static bool ended(const Fd& fd) {
    char byte;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0 ||
           (errno != EAGAIN && errno != EWOULDBLOCK);
  }
  static bool readable(const Fd& fd) {
    pollfd poll{fd.get(), POLLIN, 0};
    return ::poll(&poll, 1, 0) == 1;
  }
  static size_t open_descriptors() {
    auto entries = std::filesystem::directory_iterator("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }
  static constexpr size_t kCrowd = 150;
};
INSTANTIATE_TEST_SUITE_P(Loops, CrowdTest, ::testing::Values(LoopKind::kAsio, LoopKind::kPoll),
                         [](const auto& info) { return loop_name(info.param); });

TEST_P(CrowdTest, SilentNewcomersReplaceOlderSilentNewcomers) {
  serve_with_descriptors(256);  // Leaves room for 32 peers that have not sent their hello.
  Fd local = open_raw(unix_target().address, "RAY1 ");
  auto admitted = connect(tcp_target());
  std::vector<Fd> crowd;
  for (size_t i = 0; i < kCrowd; ++i)
    crowd.push_back(
        open_raw(tcp_target().address, i % 2 ? rpc::encode_preamble({"self", {}}) : "RAY1 "));
  auto left = [&] {
    return std::count_if(crowd.begin(), crowd.end(), [](const Fd& fd) { return !ended(fd); });
  };
  ASSERT_TRUE(driver.run_until([&] { return left() <= 32; }));
  EXPECT_EQ(left(), 32);
  EXPECT_TRUE(ended(crowd.front())) << "the oldest goes first";
  EXPECT_FALSE(ended(crowd.back()));
  EXPECT_FALSE(ended(local)) << "peers on this machine have places of their own";
  EXPECT_TRUE(admitted->is_open());
  expect_alive();
  EXPECT_TRUE(connect(unix_target()));
}

TEST_P(CrowdTest, RefusedPeersCountUntilTheirSocketIsClosed) {
  serve_with_descriptors(256);
  std::string bytes =
      rpc::encode_preamble({"self", {}}) +
      frame(rpc::FrameKind::kHello, rpc::make_hello({"driver", "", "", "wrong", ""}));
  size_t before = open_descriptors();
  std::vector<Fd> crowd;
  for (size_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(open_raw(tcp_target().address, bytes));
    // The error frame has arrived.
    ASSERT_TRUE(driver.run_until([&] { return readable(crowd.back()); }));
  }
  EXPECT_LE(open_descriptors(), before + kCrowd + 32 + 1);
  expect_alive();
}

TEST_P(CrowdTest, AdmittedPeersLeaveDescriptorsForTheProcess) {
  // Leaves 8 descriptors for newcomers over TCP, 8 for those over Unix sockets and 8 for the
  // process itself.
  serve_with_descriptors(64);
  std::vector<std::shared_ptr<rpc::Connection>> admitted;
  for (int i = 0; i < 40; ++i) admitted.push_back(connect(tcp_target()));
  auto refused = try_connect(tcp_target(), {"driver", "", "", "secret", ""});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  EXPECT_NE(refused.error().message.find("descriptors = 64"), std::string::npos)
      << refused.error().message;
}

// Once enough answers are queued for a peer that reads nothing, its further requests wait. All are
// answered when it reads again.
TEST_P(CrowdTest, APeerThatDoesNotReadGetsBackpressure) {
  constexpr uint32_t kCalls = 40;
  constexpr size_t kBlock = 4 << 20;
  Fd peer = open_raw(
      tcp_target().address,
      rpc::encode_preamble({"self", {}}) +
          frame(rpc::FrameKind::kHello, rpc::make_hello({"driver", "", "", "secret", ""})));
  ASSERT_TRUE(driver.run_until([&] { return !peers.empty() && readable(peer); }));
  Text request;
  request.set_number(kBlock);
  std::string calls;
  for (uint32_t call = 1; call <= kCalls; ++call)
    calls += frame(rpc::FrameKind::kRequest, request,
                   EchoService::descriptor()->FindMethodByName("Block")->full_name(), call);
  ASSERT_EQ(::send(peer.get(), calls.data(), calls.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(calls.size()));
  size_t most = 0, received = 0;
  ASSERT_TRUE(
      driver.run_until([&] { return (most = std::max(most, peers[0]->queued_bytes())) > kBlock; }));
  expect_alive();
  most = std::max(most, peers[0]->queued_bytes());
  EXPECT_LE(most, (size_t{32} << 20) + 2 * kBlock);
  std::vector<char> buffer(1 << 20);
  ASSERT_TRUE(driver.run_until([&] {
    ssize_t n = ::recv(peer.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) received += static_cast<size_t>(n);
    return received > kCalls * kBlock;
  }));
  EXPECT_TRUE(peers[0]->is_open());
}

TEST_P(GreetingTest, AnUnknownTargetIsRefusedByName) {
  auto refused =
      try_connect({tcp_target().address, "worker", "abcd"}, {"driver", "", "", "secret", ""});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_NE(refused.error().message.find("worker abcd"), std::string::npos)
      << refused.error().message;
  for (const char* local : {"arena", "handoff"}) {
    auto status = try_connect({tcp_target().address, local, ""}, {"driver", "", "", "secret", ""});
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("Unix sockets only"), std::string::npos)
        << status.error().message;
  }
  expect_alive();
}

TEST_P(GreetingTest, AServerThatIsSilentOrForeignIsNamed) {
  std::vector<int> accepted;
  auto silent =
      *loop.listen(net::Address::tcp("127.0.0.1", 0), [&](int fd) { accepted.push_back(fd); });
  auto timeout =
      try_connect({silent->local_address(), "self", ""}, {"driver", "", "", "", ""}, 50'000);
  ASSERT_FALSE(timeout);
  EXPECT_EQ(timeout.error().code, Code::kTimeout);
  auto http = *loop.listen(net::Address::tcp("127.0.0.1", 0), [&](int fd) {
    accepted.push_back(fd);
    EXPECT_GT(::write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28), 0);
  });
  auto foreign = try_connect({http->local_address(), "self", ""}, {"driver", "", "", "", ""});
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Code::kProtocol);
  EXPECT_NE(foreign.error().message.find("is that the right port?"), std::string::npos)
      << foreign.error().message;
  auto closing = *loop.listen(net::Address::tcp("127.0.0.1", 0), [&](int fd) { ::close(fd); });
  auto closed = try_connect({closing->local_address(), "self", ""}, {"driver", "", "", "", ""});
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kUnavailable);
  for (int fd : accepted) ::close(fd);
}

// A node's front door: accepts TCP, reads the preamble and passes the accepted socket on to the
// worker's Unix socket.
class FrontDoorTest : public RpcTest {
 protected:
  FrontDoorTest() {
    rpc::ServerOptions door_options;
    door_options.identity = {"node_manager", "node", "cluster-1", "secret", ""};
    door_options.on_foreign = [this](const rpc::Preamble& preamble, int fd, bool is_unix) {
      EXPECT_FALSE(is_unix);
      if (preamble.target != "worker") return false;
      asked_for = preamble.id;
      rpc::hand_off(loop, worker_socket, fd,
                    [this](Status status) { outcome = status ? "ok" : status.error().message; });
      return true;
    };
    worker_socket = socket_path();
    door = std::make_unique<rpc::Server>(loop, std::move(door_options));
    EXPECT_TRUE(door->listen(net::Address::tcp("127.0.0.1", 0)));
  }
  rpc::Target worker_target() const {
    return {net::Address::tcp("127.0.0.1", door->port()), "worker", "00ff"};
  }

  std::unique_ptr<rpc::Server> door;
  std::string worker_socket, asked_for, outcome;
};
INSTANTIATE_TEST_SUITE_P(Loops, FrontDoorTest, ::testing::Values(LoopKind::kAsio, LoopKind::kPoll),
                         [](const auto& info) { return loop_name(info.param); });

TEST_P(FrontDoorTest, ASocketIsHandedOnToItsTarget) {
  auto client = connect(worker_target());
  ASSERT_TRUE(client);
  EXPECT_EQ(asked_for, "00ff");
  EXPECT_EQ(client->peer().role, "head") << "answered by the target, not by the door";
  EXPECT_FALSE(peers[0]->peer().is_unix);
  door.reset();  // The connection does not need the door after the hand-off.
  std::string received;
  rpc::CallOptions with_bytes;
  with_bytes.attachment = owned(std::string(1 << 20, 'x'));
  auto reply = call(*client, &Stub::Echo, text("through"), std::move(with_bytes), &received);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(received.size(), size_t{1} << 20);
  EXPECT_EQ(outcome, "ok");
}

TEST_P(FrontDoorTest, AHandedOnConnectionOwesTheToken) {
  auto refused = try_connect(worker_target(), {"driver", "", "", "", ""});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnauthenticated);
}

TEST_P(FrontDoorTest, ATargetThatIsGoneIsReportedToBothSides) {
  worker_socket = dir.path("gone");
  auto refused = try_connect(worker_target(), {"driver", "", "", "secret", ""});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_NE(refused.error().message.find("does not answer"), std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(driver.run_until([&] { return !outcome.empty(); }));
  EXPECT_NE(outcome.find("gone"), std::string::npos);
}

}  // namespace
}  // namespace rt::test
