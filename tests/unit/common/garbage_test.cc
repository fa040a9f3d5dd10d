// Peers that send nonsense: the server closes their connections and keeps serving everybody else.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "common/net/sockets.h"
#include "common/proto/rpc.pb.h"
#include "common/rpc/hello.h"
#include "tests/unit/common/rpc_fixture.h"

namespace rt::test {
namespace {

using Stub = EchoService::Stub;

std::string frame(rpc::FrameHeader header, const std::string& body) {
  std::string bytes(rpc::kHeaderBytes, '\0');
  rpc::encode_header(header, reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes + body;
}
std::string frame(rpc::FrameKind kind, const std::string& body, uint32_t call = 0,
                  uint32_t method = 0) {
  auto size = static_cast<uint32_t>(body.size());
  return frame({size, size, method, call, kind}, body);
}
std::string hello(const rpc::Identity& me = {"driver", "", "", "secret", ""}) {
  return frame(rpc::FrameKind::kHello, rpc::make_hello(me).SerializeAsString());
}
std::string preamble() { return rpc::encode_preamble({}); }

class GarbageTest : public RpcTest {
 protected:
  // A connected socket without a client behind it.
  Fd raw(bool over_unix = false) {
    Fd fd(::socket(over_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    net::SockAddr to;
    if (over_unix) {
      to = std::move(*net::unix_sockaddr(socket_path()));
    } else {
      net::literal_sockaddr("127.0.0.1", server->port(), to);
    }
    EXPECT_EQ(::connect(fd.get(), to.get(), to.size), 0);
    return fd;
  }
  // Sends `bytes`, runs the loop until the server has closed the connection, and returns
  // everything the server sent until then.
  std::string converse(int fd, const std::string& bytes) {
    (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string said;
    EXPECT_TRUE(driver.run_until([&] {
      char buffer[4096];
      ssize_t n = ::recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (n > 0) said.append(buffer, static_cast<size_t>(n));
      return n == 0 || (n < 0 && errno != EAGAIN);
    })) << "the server keeps the connection";
    return said;
  }
  // The message of the error frame that ends `said`, the bytes that a server sent.
  static std::string error_in(const std::string& said) {
    std::string last;
    size_t at = 0;
    while (at + rpc::kHeaderBytes <= said.size()) {
      auto header = rpc::decode_header(reinterpret_cast<const uint8_t*>(said.data()) + at,
                                       rpc::kMaxFrameBytes);
      if (!header) break;
      proto::RpcError error;
      if (header->kind == rpc::FrameKind::kError &&
          error.ParseFromString(said.substr(at + rpc::kHeaderBytes, header->body_bytes)))
        last = error.message();
      at += rpc::kHeaderBytes + header->body_bytes;
    }
    return last;
  }
};
INSTANTIATE_TEST_SUITE_P(Loops, GarbageTest, ::testing::Values(LoopKind::kAsio, LoopKind::kPoll),
                         [](const auto& info) { return loop_name(info.param); });

TEST_P(GarbageTest, NonsenseBeforeAndInsteadOfAHelloIsCutOff) {
  std::string random(5000, '\0');
  Rng rng(5);
  for (char& c : random) c = static_cast<char>(rng.next());
  struct {
    const char* name;
    std::string bytes;
    const char* error;  // A part of the error frame's text. Null: closed without an error frame.
  } const cases[] = {
      {"an HTTP request", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", nullptr},
      {"a long HTTP request", "POST / HTTP/1.1\r\n" + std::string(100'000, 'h'), nullptr},
      {"random bytes", random, nullptr},
      {"zeros", std::string(200, '\0'), nullptr},
      {"a damaged preamble", "RAY1 " + std::string(75, '!'), nullptr},
      {"another generation's preamble", "RAY2 " + preamble().substr(5), nullptr},
      {"random frames", preamble() + random, ""},
      {"a huge length", preamble() + frame({0xffffffff, 1, 0, 0, rpc::FrameKind::kHello}, ""),
       "oversized"},
      {"a hello over its bound",
       preamble() + frame({64 * 1024 + 1, 0, 0, 0, rpc::FrameKind::kHello}, ""), "oversized"},
      {"an unknown kind", preamble() + frame({0, 0, 0, 0, static_cast<rpc::FrameKind>(9)}, ""),
       "unknown kind"},
      {"a message larger than its body",
       preamble() + frame({3, 4, 0, 0, rpc::FrameKind::kHello}, "abc"), "in a body of 3"},
      {"a hello that is no message", preamble() + frame(rpc::FrameKind::kHello, "\xff\xff\xff"),
       "cannot be parsed"},
      {"a request first", preamble() + frame(rpc::FrameKind::kRequest, "", 1, 1), "not a hello"},
      {"a flat frame first", preamble() + frame(rpc::FrameKind::kFlat, "x"), "not a hello"},
      {"an empty hello", preamble() + frame(rpc::FrameKind::kHello, ""), "protocol version 0"},
      {"two hellos", preamble() + hello() + hello(), "second hello"},
      {"a broken frame behind a good hello",
       preamble() + hello() + frame({5, 6, 0, 0, rpc::FrameKind::kRequest}, "x"), "in a body of 5"},
      {"a huge frame behind a good hello",
       preamble() + hello() + frame({0x7fffffff, 0, 0, 0, rpc::FrameKind::kRequest}, "x"),
       "oversized"},
      {"flat frames nobody handles", preamble() + hello() + frame(rpc::FrameKind::kFlat, "x"),
       "flat frames"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Fd fd = raw();
    std::string said = converse(fd.get(), c.bytes);
    if (c.error == nullptr) {
      EXPECT_TRUE(said.empty());
    } else {
      EXPECT_NE(error_in(said).find(c.error), std::string::npos) << error_in(said);
    }
    fd.reset();
    expect_alive();
  }
  ASSERT_TRUE(driver.run_until([&] { return server->connections().empty(); }))
      << "connections leak";
}

TEST_P(GarbageTest, OddFramesOnAnOpenConnectionAreAnsweredOrIgnored) {
  Fd fd = raw();
  uint32_t echo_hash = rpc::method_hash("rt.test.EchoService.Echo");
  std::string bytes = preamble() + hello();
  bytes += frame(rpc::FrameKind::kResponse, "an answer to nothing", 77);
  bytes += frame(rpc::FrameKind::kError, "", 78);
  bytes += frame(rpc::FrameKind::kOneWay, "", 0, 12345);
  bytes += frame(rpc::FrameKind::kOneWay, "\xff\xff", 0, echo_hash);
  // Fails with kProtocol for this call only.
  bytes += frame(rpc::FrameKind::kRequest, "\xff\xff", 5, echo_hash);
  ASSERT_EQ(::send(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  std::string said;
  ASSERT_TRUE(driver.run_until([&] {
    char buffer[4096];
    ssize_t n = ::recv(fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n > 0) said.append(buffer, static_cast<size_t>(n));
    return !error_in(said).empty();
  }));
  EXPECT_NE(error_in(said).find("rt.test.EchoService.Echo"), std::string::npos);
  EXPECT_EQ(server->connections().size(), 1u);
  std::string unknown = frame(rpc::FrameKind::kError, "", 0);
  EXPECT_EQ(converse(fd.get(), unknown), "") << "an error without a call ends the connection";
  expect_alive();
}

TEST_P(GarbageTest, HalfOpenAndIdlePeersTimeOut) {
  options.hello_timeout_us = 50'000;
  serve(options);
  for (bool over_unix : {false, true}) {
    for (const std::string& start : {std::string(), std::string("RAY1"), preamble().substr(0, 79),
                                     preamble(), preamble() + hello().substr(0, 10)}) {
      SCOPED_TRACE(start.size());
      Fd fd = raw(over_unix);
      converse(fd.get(), start);
      expect_alive();
    }
  }
  // Silent peers do not keep others out while they wait for their timeout.
  options.hello_timeout_us = 60'000'000;
  serve(options);
  std::vector<Fd> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(raw());
  expect_alive();
}

TEST_P(GarbageTest, APeerThatLeavesAtAnyByteLeaksNothing) {
  std::string bytes = preamble() + hello() +
                      frame(rpc::FrameKind::kRequest, text("x").SerializeAsString(), 1,
                            rpc::method_hash("rt.test.EchoService.Echo"));
  for (size_t n = 0; n < bytes.size(); n += 7) {
    Fd fd = raw();
    ASSERT_EQ(::send(fd.get(), bytes.data(), n, 0), static_cast<ssize_t>(n));
  }
  expect_alive();
  peers.clear();
  ASSERT_TRUE(driver.run_until([&] { return server->connections().empty(); }));
}

TEST_P(GarbageTest, AHandOverWithoutASocketIsRefused) {
  int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (int passed : {-1, file}) {
    Fd fd = raw(true);
    ASSERT_TRUE(net::send_with_fds(fd.get(), rpc::encode_preamble({"handoff", ""}), &passed,
                                   passed < 0 ? 0 : 1));
    converse(fd.get(), "");
  }
  // Unexpected descriptors are closed, however many come.
  int many[3] = {file, file, file};
  Fd fd = raw(true);
  ASSERT_TRUE(
      net::send_with_fds(fd.get(), preamble() + "garbage behind it that is no frame", many, 3));
  converse(fd.get(), "");
  ::close(file);
  expect_alive();
}

}  // namespace
}  // namespace rt::test
