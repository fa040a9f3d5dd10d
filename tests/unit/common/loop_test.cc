// The promises of net/loop.h, checked for both loops against real sockets.
#include "common/net/loop.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/common/free_port.h"
#include "tests/unit/common/loop_driver.h"

namespace rt::net {
namespace {

using test::LoopDriver;
using test::LoopKind;
using test::TempDir;

// Owns one stream and collects the bytes that arrive; sends them back if `echo` is set.
class Peer : public StreamHandler {
 public:
  explicit Peer(std::unique_ptr<Stream> s) : stream(std::move(s)) { stream->start(this); }
  MutableBytes read_buffer() override { return buffer_; }
  void on_read(size_t n) override {
    ++reads;
    received.append(reinterpret_cast<const char*>(buffer_.data()), n);
    if (echo) stream->write(Bytes(buffer_.data(), n));
    if (on_data) on_data();
  }
  void on_closed(const Error& why) override {
    ++closed;
    reason = why.message;
    if (when_closed) when_closed();
  }
  void on_drained() override { ++drained; }

  std::unique_ptr<Stream> stream;
  std::string received, reason;
  int closed = 0, drained = 0, reads = 0;
  bool echo = false;
  std::function<void()> on_data, when_closed;

 private:
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(16 << 10);
};

class LoopTest : public ::testing::TestWithParam<LoopKind> {
 protected:
  LoopTest() : driver(GetParam()), loop(driver.loop()) {}

  std::unique_ptr<Listener> listen(const Address& address) {
    auto listener = loop.listen(
        address, [this](int fd) { accepted.push_back(std::make_unique<Peer>(loop.adopt(fd))); });
    EXPECT_TRUE(listener) << listener.error().message;
    return listener ? std::move(*listener) : nullptr;
  }
  std::unique_ptr<Peer> connect(const Address& address) {
    std::unique_ptr<Peer> peer;
    loop.connect(address, 60'000'000, [&](Result<std::unique_ptr<Stream>> stream) {
      ASSERT_TRUE(stream) << stream.error().message;
      peer = std::make_unique<Peer>(std::move(*stream));
    });
    EXPECT_EQ(peer, nullptr) << "done was called from inside connect()";
    size_t before = accepted.size();
    EXPECT_TRUE(driver.run_until([&] { return peer != nullptr && accepted.size() > before; }));
    return peer;
  }
  Error connect_error(const Address& address, int64_t timeout_us) {
    Error error;
    bool done = false;
    loop.connect(address, timeout_us, [&](Result<std::unique_ptr<Stream>> stream) {
      done = true;
      if (!stream) error = stream.error();
    });
    EXPECT_TRUE(driver.run_until([&] { return done; }));
    return error;
  }

  LoopDriver driver;
  Loop& loop;
  std::vector<std::unique_ptr<Peer>> accepted;
};

INSTANTIATE_TEST_SUITE_P(Loops, LoopTest, ::testing::Values(LoopKind::kAsio, LoopKind::kPoll),
                         [](const auto& info) { return test::loop_name(info.param); });

TEST_P(LoopTest, BytesGoRoundOverTcpAndUnixSockets) {
  TempDir dir;
  for (const Address& address : {Address::tcp("127.0.0.1", 0), Address::tcp("::1", 0),
                                 Address::unix_socket(dir.path("s"))}) {
    SCOPED_TRACE(address.to_string());
    auto listener = listen(address);
    auto client = connect(listener->local_address());
    EXPECT_EQ(client->stream->is_unix(), address.kind == Address::Kind::kUnix);
    EXPECT_EQ(client->stream->peer_name(),
              client->stream->is_unix() ? "unix" : listener->local_address().to_string());
    accepted.back()->echo = true;
    client->stream->write(as_bytes("hello "));
    client->stream->out() += "world";
    ASSERT_TRUE(driver.run_until([&] { return client->received == "hello world"; }));
    client->stream->close();
    ASSERT_TRUE(driver.run_until([&] { return accepted.back()->closed == 1; }));
    EXPECT_EQ(client->closed, 0) << "told of its own close";
  }
}

TEST_P(LoopTest, AHostNameIsResolved) {
  auto listener = listen(Address::tcp("localhost", 0));
  auto client = connect(Address::tcp("localhost", listener->local_address().port));
  EXPECT_TRUE(client);
  Error error = connect_error(Address::tcp("no-such-host.invalid", 1), 60'000'000);
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_NE(error.message.find("no-such-host.invalid"), std::string::npos);
}

TEST_P(LoopTest, UnixPathsMayBeLong) {
  TempDir dir;
  std::string deep = dir.root();
  for (int i = 0; i < 4; ++i) {
    deep += "/" + std::string(60, 'd');
    ASSERT_EQ(::mkdir(deep.c_str(), 0700), 0);
  }
  std::string path = deep + "/socket";
  {
    auto listener = listen(Address::unix_socket(path));
    auto client = connect(Address::unix_socket(path));
    client->stream->write(as_bytes("x"));
    EXPECT_TRUE(driver.run_until([&] { return accepted.back()->received == "x"; }));
    EXPECT_EQ(listener->local_address().path, path);
    EXPECT_FALSE(loop.listen(Address::unix_socket(path), [](int) {}))
        << "a live socket was replaced";
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "the listener left its socket behind";
  EXPECT_FALSE(loop.listen(Address::unix_socket(deep + "/" + std::string(200, 'n')), [](int) {}));
}

TEST_P(LoopTest, RefusedAndTimedOutConnectionsNameTheAddress) {
  TempDir dir;
  int port = test::free_port();
  Error refused = connect_error(Address::tcp("127.0.0.1", port), 60'000'000);
  EXPECT_EQ(refused.code, Code::kUnavailable);
  EXPECT_NE(refused.message.find("127.0.0.1:" + std::to_string(port)), std::string::npos);
  Error missing = connect_error(Address::unix_socket(dir.path("none")), 60'000'000);
  EXPECT_EQ(missing.code, Code::kUnavailable);
  EXPECT_NE(missing.message.find(dir.path("none")), std::string::npos);

  // A listener that never accepts and whose backlog is full leaves connections half-open.
  int full = *listen_on(Address::unix_socket(dir.path("full")));
  ASSERT_EQ(::listen(full, 0), 0);
  std::unique_ptr<Stream> first;
  loop.connect(Address::unix_socket(dir.path("full")), -1,
               [&](auto stream) { first = std::move(*stream); });
  ASSERT_TRUE(driver.run_until([&] { return first != nullptr; }));
  Error timeout = connect_error(Address::unix_socket(dir.path("full")), 30'000);
  EXPECT_EQ(timeout.code, Code::kTimeout);
  ::close(full);
}

TEST_P(LoopTest, TimersFireInOrderUnlessCancelled) {
  std::string order;
  const int64_t start = loop.now_us();
  // The one that fires later is added first. A preemption between the calls may turn that round:
  // then both are added again.
  for (bool turned = true; turned;) {
    const int64_t before = loop.now_us();
    const auto b = loop.run_after(3000, [&] { order += 'b'; });
    const auto a = loop.run_after(1000, [&] { order += 'a'; });
    turned = loop.now_us() - before >= 2000;
    if (!turned) break;
    for (auto timer : {a, b}) loop.cancel(timer);
  }
  auto cancelled = loop.run_after(2000, [&] { order += '!'; });
  loop.run_after(5000, [&] { order += 'c'; });
  loop.cancel(cancelled);
  ASSERT_TRUE(driver.run_until([&] { return order.size() == 3; }));
  EXPECT_EQ(order, "abc");
  EXPECT_GE(loop.now_us() - start, 5000);
  loop.cancel(cancelled);
}

TEST_P(LoopTest, AnyThreadMayPostAndNothingIsLost) {
  constexpr int kThreads = 4, kEach = 5000;
  int ran = 0;  // Only the loop's thread touches it.
  std::vector<int> last(kThreads, -1);
  bool ordered = true;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        loop.post([&, t, i] {
          ++ran;
          ordered &= last[t] == i - 1;
          last[t] = i;
        });
      }
    });
  }
  EXPECT_TRUE(driver.run_until([&] { return ran == kThreads * kEach; }));
  EXPECT_TRUE(ordered);
  for (auto& thread : threads) thread.join();
}

TEST_P(LoopTest, BulkDataFlowsBothWaysWithBackPressure) {
  auto listener = listen(Address::tcp("127.0.0.1", 0));
  auto client = connect(listener->local_address());
  Peer& server = *accepted.back();
  // 32 MiB, of which one half is copied and the other half is written by reference; the writer
  // learns when the queue has drained.
  auto block = std::make_shared<std::string>(4 << 20, 'x');
  for (size_t i = 0; i < block->size(); i += 997) (*block)[i] = static_cast<char>(i);
  std::weak_ptr<std::string> watched = block;
  std::string expected;
  for (int i = 0; i < 4; ++i) {
    client->stream->write(as_bytes(*block));
    client->stream->write_ref(as_bytes(*block), block);
    expected += *block + *block;
  }
  client->stream->write(as_bytes("end"));
  expected += "end";
  EXPECT_EQ(client->stream->queued_bytes(), expected.size());
  client->stream->flush();
  EXPECT_GT(client->stream->queued_bytes(), 0u);
  EXPECT_EQ(client->drained, 0) << "called from inside flush()";
  block.reset();
  EXPECT_FALSE(watched.expired());
  ASSERT_TRUE(driver.run_until([&] { return server.received.size() == expected.size(); }));
  EXPECT_TRUE(server.received == expected);
  ASSERT_TRUE(driver.run_until([&] { return client->drained == 1; }));
  EXPECT_EQ(client->stream->queued_bytes(), 0u);
  EXPECT_TRUE(watched.expired()) << "sent blocks are not released";
}

TEST_P(LoopTest, WritesOfOneTurnShareASystemCall) {
  TempDir dir;
  auto listener = listen(Address::unix_socket(dir.path("s")));
  auto client = connect(listener->local_address());
  loop.post([&] {
    for (int i = 0; i < 100; ++i) client->stream->write(as_bytes("0123456789"));
  });
  ASSERT_TRUE(driver.run_until([&] { return accepted.back()->received.size() == 1000; }));
  EXPECT_EQ(accepted.back()->reads, 1);
}

TEST_P(LoopTest, AHandlerMayDestroyItsStreamAndOthers) {
  auto listener = listen(Address::tcp("127.0.0.1", 0));
  auto a = connect(listener->local_address());
  auto b = connect(listener->local_address());
  ASSERT_EQ(accepted.size(), 2u);
  // Both streams get data in the same turn; the handler that runs first destroys both.
  int calls = 0;
  for (auto& peer : accepted) {
    peer->on_data = [&] {
      ++calls;
      for (auto& each : accepted) each->stream.reset();
    };
  }
  a->stream->write(as_bytes("1"));
  b->stream->write(as_bytes("2"));
  ASSERT_TRUE(driver.run_until([&] { return a->closed == 1 && b->closed == 1; }));
  EXPECT_EQ(calls, 1);
  // A stream may also be destroyed from inside on_closed.
  auto c = connect(listener->local_address());
  c->when_closed = [&] { c->stream.reset(); };
  accepted.back()->stream.reset();
  ASSERT_TRUE(driver.run_until([&] { return c->closed == 1; }));
}

TEST_P(LoopTest, WhatAPeerSentBeforeItClosedIsDelivered) {
  auto listener = listen(Address::tcp("127.0.0.1", 0));
  auto client = connect(listener->local_address());
  client->stream->write(as_bytes("last words"));
  client->stream->flush();
  client->stream->close();
  ASSERT_TRUE(driver.run_until([&] { return accepted.back()->closed == 1; }));
  EXPECT_EQ(accepted.back()->received, "last words");
}

TEST_P(LoopTest, WritingToAClosedPeerEndsInOnClosed) {
  TempDir dir;
  auto listener = listen(Address::unix_socket(dir.path("s")));
  auto client = connect(listener->local_address());
  accepted.back()->stream->close();
  for (int i = 0; i < 3; ++i) {
    client->stream->write(as_bytes("into the void"));
    client->stream->flush();
  }
  EXPECT_EQ(client->closed, 0) << "called from inside flush()";
  ASSERT_TRUE(driver.run_until([&] { return client->closed > 0; }));
  EXPECT_EQ(client->closed, 1);
  client->stream->write(as_bytes("more"));
  client->stream->flush();
  EXPECT_EQ(client->stream->queued_bytes(), 0u);
}

TEST_P(LoopTest, WatchedDescriptorsAreReportedUntilTheyAreRead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int calls = 0;
  std::unique_ptr<FdWatch> watch;
  watch = loop.watch_readable(ends[0], [&] {
    if (++calls < 3) return;  // The watch is level-triggered, so it reports again.
    char c;
    ASSERT_EQ(::read(ends[0], &c, 1), 1);
    watch.reset();  // A watch may be destroyed from inside its own callback.
  });
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  ASSERT_TRUE(driver.run_until([&] { return watch == nullptr; }));
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(::write(ends[1], "y", 1), 1);
  bool later = false;
  loop.run_after(2000, [&] { later = true; });
  ASSERT_TRUE(driver.run_until([&] { return later; }));
  EXPECT_EQ(calls, 3);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(LoopTest, AnInheritedListenerIsTakenOver) {
  int fd = *listen_on(Address::tcp("127.0.0.1", 0));
  int port = *bound_port(fd);
  auto listener = loop.listen_fd(fd, [this](int accepted_fd) {
    accepted.push_back(std::make_unique<Peer>(loop.adopt(accepted_fd)));
  });
  ASSERT_TRUE(listener);
  EXPECT_EQ((*listener)->local_address().port, port);
  EXPECT_TRUE(connect(Address::tcp("127.0.0.1", port)));
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  EXPECT_EQ(loop.listen_fd(pair[0], [](int) {}).error().code, Code::kInvalid);
  ::close(pair[1]);
}

TEST_P(LoopTest, ManyConnectionsComeAndGo) {
  TempDir dir;
  auto listener = listen(Address::unix_socket(dir.path("s")));
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Peer>> clients;
    for (int i = 0; i < 100; ++i) {
      loop.connect(listener->local_address(), 60'000'000, [&](auto stream) {
        ASSERT_TRUE(stream) << stream.error().message;
        clients.push_back(std::make_unique<Peer>(std::move(*stream)));
        clients.back()->stream->write(as_bytes("hi"));
      });
    }
    ASSERT_TRUE(driver.run_until([&] { return clients.size() == 100 && accepted.size() == 100; }));
    for (auto& peer : accepted) peer->stream->write(as_bytes("ho"));
    ASSERT_TRUE(driver.run_until([&] {
      return std::all_of(clients.begin(), clients.end(),
                         [](auto& c) { return c->received == "ho"; }) &&
             std::all_of(accepted.begin(), accepted.end(),
                         [](auto& c) { return c->received == "hi"; });
    }));
    clients.clear();
    ASSERT_TRUE(driver.run_until([&] {
      return std::all_of(accepted.begin(), accepted.end(), [](auto& c) { return c->closed == 1; });
    }));
    accepted.clear();
  }
}

}  // namespace
}  // namespace rt::net
