// Addresses, listening on them, and file descriptors that travel over Unix sockets.
#include "common/net/address.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "common/base/fd.h"
#include "common/net/listen.h"
#include "common/net/probe.h"
#include "tests/unit/common/loop_driver.h"

namespace rt::net {
namespace {

TEST(Address, ParsesWhatItPrints) {
  for (const char* text : {"127.0.0.1:6379", "head.example.org:1", "[::1]:65535",
                           "unix:/tmp/x y.sock", "localhost:0"}) {
    auto address = Address::parse(text);
    ASSERT_TRUE(address) << text << ": " << address.error().message;
    EXPECT_EQ(address->to_string(), text);
  }
  EXPECT_EQ(*Address::parse("unix:///run/a"), Address::unix_socket("/run/a"));
}

TEST(Address, NamesWhatIsWrong) {
  struct {
    const char* text;
    const char* says;
  } const cases[] = {{"", "port is missing"},
                     {"host", "port is missing"},
                     {":80", "host is missing"},
                     {"host:", "port is not a number"},
                     {"host:x", "port is not a number"},
                     {"host:65536", "port is not a number"},
                     {"host:-1", "port is not a number"},
                     {"host:80 ", "port is not a number"},
                     {"::1:80", "brackets"},
                     {"[::1:80", "']' is missing"},
                     {"unix:", "path is missing"},
                     {"a b:80", "character"},
                     {"http://h:80", "brackets"}};
  for (const auto& c : cases) {
    auto address = Address::parse(c.text);
    ASSERT_FALSE(address) << c.text;
    EXPECT_EQ(address.error().code, Code::kInvalid);
    EXPECT_NE(address.error().message.find(c.says), std::string::npos) << address.error().message;
  }
}

TEST(IsListening, IsDetectedByConnecting) {
  test::TempDir dir;
  const std::string far = dir.path(std::string(120, 'x'));  // Longer than sockaddr_un::sun_path.
  ASSERT_EQ(::mkdir(far.c_str(), 0700), 0);
  for (const std::string& path : {dir.path("s"), far + "/s"}) {
    Address address = Address::unix_socket(path);
    EXPECT_EQ(is_listening(address, 0), Listening::kNo) << "no such file";
    {
      Fd listener(*listen_on(address));
      EXPECT_EQ(is_listening(address, 0), Listening::kYes);
    }
    EXPECT_EQ(is_listening(address, 0), Listening::kNo) << "stale";
  }
  EXPECT_EQ(is_listening(Address::unix_socket(far + "/none/s"), 0), Listening::kNo)
      << "no such directory";
  Fd listener(*listen_on(Address::tcp("127.0.0.1", 0)));
  Address address = Address::tcp("127.0.0.1", *bound_port(listener.get()));
  EXPECT_EQ(is_listening(address, 1000), Listening::kYes);
  listener.reset();
  EXPECT_EQ(is_listening(address, 1000), Listening::kNo);
}

TEST(ListenOn, ASecondListenerLearnsThePortAndTheRemedy) {
  int first = *listen_on(Address::tcp("127.0.0.1", 0));
  int port = *bound_port(first);
  auto second = listen_on(Address::tcp("127.0.0.1", port));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            "port " + std::to_string(port) +
                " on 127.0.0.1 is in use: choose another with --port, or stop what listens there");
  EXPECT_EQ(listen_on_port("127.0.0.1", port, "--metrics-export-port").error().message,
            "port " + std::to_string(port) +
                " on 127.0.0.1 is in use: choose another with --metrics-export-port, or stop what "
                "listens there");
  ::close(first);
  auto third = listen_on(Address::tcp("127.0.0.1", port));
  ASSERT_TRUE(third);
  ::close(*third);
}

TEST(ListenOn, RefusesAddressesOfOtherMachines) {
  auto result = listen_on(Address::tcp("192.0.2.1", 0));
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("not an address of this machine"), std::string::npos)
      << result.error().message;
}

TEST(IsOfThisMachine, EveryLoopbackAddressAndTheDetectedOne) {
  for (const char* ip : {"127.0.0.1", "127.8.9.10"}) EXPECT_TRUE(is_of_this_machine(ip)) << ip;
  EXPECT_TRUE(is_of_this_machine(detect_node_ip()));
  for (const char* ip : {"240.9.9.9", "2001:db8::77", "nonsense"})
    EXPECT_FALSE(is_of_this_machine(ip)) << ip;
}

TEST(ListenOn, ReplacesStaleUnixSocketsOnly) {
  test::TempDir dir;
  std::string path = dir.path("s");
  int first = *listen_on(Address::unix_socket(path));
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  auto live = listen_on(Address::unix_socket(path));
  ASSERT_FALSE(live);
  EXPECT_NE(live.error().message.find("another process listens there"), std::string::npos);
  ::close(first);
  auto again = listen_on(Address::unix_socket(path));
  ASSERT_TRUE(again) << again.error().message;
  ::close(*again);

  std::string file = dir.path("file");
  std::ofstream(file) << "precious";
  auto refused = listen_on(Address::unix_socket(file));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("not a socket"), std::string::npos);
  EXPECT_EQ(::access(file.c_str(), F_OK), 0);
  EXPECT_FALSE(listen_on(Address::unix_socket(dir.path("no/such/dir"))));
}

TEST(PassingDescriptors, TheyArriveWithTheirBytes) {
  int pair[2], pipe_ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  ASSERT_EQ(::pipe(pipe_ends), 0);
  ASSERT_TRUE(send_with_fds(pair[0], "hello", pipe_ends, 2));
  auto received = receive_with_fds(pair[1], 100, 1'000'000);
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(received->data, "hello");
  ASSERT_EQ(received->fds.size(), 2u);
  EXPECT_EQ(::write(received->fds[1], "x", 1), 1);
  char c = 0;
  EXPECT_EQ(::read(pipe_ends[0], &c, 1), 1);
  EXPECT_EQ(c, 'x');
  EXPECT_EQ(receive_with_fds(pair[1], 100, 1000).error().code, Code::kTimeout);
  ::close(pair[0]);
  EXPECT_EQ(receive_with_fds(pair[1], 100, 1'000'000).error().code, Code::kUnavailable);
  for (int fd : {pair[1], pipe_ends[0], pipe_ends[1], received->fds[0], received->fds[1]})
    ::close(fd);
}

TEST(DetectNodeIp, IsAnAddressOfThisMachine) {
  auto fd = listen_on(Address::tcp(detect_node_ip(), 0));
  ASSERT_TRUE(fd) << fd.error().message;
  ::close(*fd);
}

}  // namespace
}  // namespace rt::net
