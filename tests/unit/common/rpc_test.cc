// Calls, one-way messages, attachments and flat frames over established connections.
#include "tests/unit/common/rpc_fixture.h"

#include <unistd.h>

namespace rt::test {
namespace {

using rpc::CallOptions;
using rpc::Connection;
using Stub = EchoService::Stub;

INSTANTIATE_TEST_SUITE_P(Loops, RpcTest, ::testing::Values(LoopKind::kAsio, LoopKind::kPoll),
                         [](const auto& info) { return loop_name(info.param); });

TEST_P(RpcTest, BothSidesLearnWhoTheOtherIs) {
  auto client = connect(tcp_target());
  EXPECT_EQ(client->peer().role, "head");
  EXPECT_EQ(client->peer().id, "head-id");
  EXPECT_EQ(client->peer().cluster_id, "cluster-1");
  EXPECT_FALSE(client->peer().is_unix);
  EXPECT_EQ(peers[0]->peer().role, "driver");
  EXPECT_EQ(peers[0]->peer().id, "driver-id");
  EXPECT_EQ(peers[0]->peer().job_config, "job");
  EXPECT_EQ(server->connections().size(), 1u);
  client->close(make_error(Code::kCancelled, "done"));
  ASSERT_TRUE(driver.run_until([&] { return server->connections().empty(); }));
}

TEST_P(RpcTest, CallsAreAnsweredBothWays) {
  auto client = connect(unix_target());
  auto reply = call(*client, &Stub::Echo, text("there", 7));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->text(), "there");
  EchoServer mine;
  client->add_service(&mine);
  reply = call(*peers[0], &Stub::Echo, text("and back", 8));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->text(), "and back");
}

TEST_P(RpcTest, ManyCallsAtOnceAreMatchedWithTheirAnswers) {
  auto client = connect(tcp_target());
  int answered = 0, wrong = 0;
  for (int i = 0; i < 5000; ++i) {
    rpc::call(*client, &Stub::Echo, text("n", i), 30'000'000, [&, i](Result<Text> reply) {
      ++answered;
      if (!reply || reply->number() != i) ++wrong;
    });
  }
  ASSERT_TRUE(driver.run_until([&] { return answered == 5000; }));
  EXPECT_EQ(wrong, 0);
}

TEST_P(RpcTest, AnswersMayComeInAnyOrder) {
  auto client = connect(tcp_target());
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    rpc::call(*client, &Stub::Hold, text("h"), -1, [&, i](Result<Text> reply) {
      EXPECT_EQ(reply->number(), i);
      order.push_back(i);
    });
  }
  ASSERT_TRUE(driver.run_until([&] { return echo.held.size() == 3; }));
  for (int i : {2, 0, 1}) {
    echo.held[i].response->set_number(i);
    echo.held[i].done->Run();
  }
  echo.held.clear();
  ASSERT_TRUE(driver.run_until([&] { return order.size() == 3; }));
  EXPECT_EQ(order, (std::vector<int>{2, 0, 1}));
}

TEST_P(RpcTest, OneWayMessagesKeepTheirOrderAndGetNoAnswer) {
  auto client = connect(tcp_target());
  for (int i = 0; i < 500; ++i) rpc::notify(*client, &Stub::Note, text(std::to_string(i)));
  auto reply = call(*client, &Stub::Echo, text("after"));
  ASSERT_TRUE(reply);
  ASSERT_EQ(echo.notes.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(echo.notes[i], std::to_string(i));
  rpc::notify(*client, &Stub::Fail, text("nobody hears"));
  EXPECT_TRUE(call(*client, &Stub::Echo, text("still fine")));
}

TEST_P(RpcTest, AttachmentsOfAllSizesTravelBothWays) {
  auto client = connect(tcp_target());
  for (size_t size : {0, 1, 1000, 16 << 10, 100'000, 5 << 20}) {
    std::string sent(size, 'a'), received;
    for (size_t i = 0; i < size; i += 997) sent[i] = static_cast<char>(i);
    CallOptions options;
    options.attachment = owned(sent);
    auto reply = call(*client, &Stub::Echo, text("with bytes"), std::move(options), &received);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_TRUE(received == sent) << size;
  }
}

TEST_P(RpcTest, AResponseIsWrittenIntoItsTarget) {
  auto client = connect(tcp_target());
  for (size_t size : {1, 100, 100'000, 8 << 20}) {
    std::vector<uint8_t> target(size);
    CallOptions options;
    options.response_target = target;
    Bytes seen;
    bool done = false;
    rpc::call(*client, &Stub::Block, text("", static_cast<int64_t>(size)), std::move(options),
              [&](Result<Text> reply, Bytes attachment) {
                ASSERT_TRUE(reply) << reply.error().message;
                EXPECT_EQ(reply->text(), "block");
                seen = attachment;
                done = true;
              });
    // Small calls are answered on the same connection while the large answer is under way.
    int others = 0;
    for (int i = 0; i < 10; ++i)
      rpc::call(*client, &Stub::Echo, text("x"), -1,
                [&](Result<Text> reply) { others += reply.has_value(); });
    ASSERT_TRUE(driver.run_until([&] { return done && others == 10; }));
    EXPECT_EQ(seen.data(), target.data());
    ASSERT_EQ(seen.size(), size);
    for (size_t i = 0; i < size; ++i)
      ASSERT_EQ(target[i], static_cast<uint8_t>(i % 1009 == 0 ? static_cast<char>(i) : 'b')) << i;
  }
}

TEST_P(RpcTest, ATargetOfTheWrongSizeFailsTheCallOnly) {
  auto client = connect(tcp_target());
  for (int64_t answer : {int64_t{0}, int64_t{99}, int64_t{101}, int64_t{3 << 20}}) {
    std::vector<uint8_t> target(100, 7);
    CallOptions options;
    options.response_target = target;
    auto reply = call(*client, &Stub::Block, text("", answer), std::move(options));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Code::kProtocol);
    EXPECT_EQ(target, std::vector<uint8_t>(100, 7));
    EXPECT_TRUE(call(*client, &Stub::Echo, text("next")));
  }
}

TEST_P(RpcTest, ATimedOutCallNeverTouchesItsTargetAgain) {
  auto client = connect(tcp_target());
  for (int64_t timeout_us : {0, 300, 1000, 2000, 4000}) {  // Before, within and after the transfer.
    constexpr size_t kSize = 24 << 20;
    auto target = std::make_unique<std::vector<uint8_t>>(kSize);
    CallOptions options;
    options.timeout_us = timeout_us;
    options.response_target = *target;
    auto reply = call(*client, &Stub::Block, text("", kSize), std::move(options));
    EXPECT_TRUE(reply || reply.error().code == Code::kTimeout) << reply.error().message;
    target.reset();  // A sanitizer or the allocator would report a write after this.
    EXPECT_TRUE(call(*client, &Stub::Echo, text("drained")));
  }
}

TEST_P(RpcTest, ErrorsArriveWithCodeAndMessage) {
  auto client = connect(tcp_target());
  auto reply = call(*client, &Stub::Fail, text("no such key: k"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kNotFound);
  EXPECT_EQ(reply.error().message, "no such key: k");
  reply = call(*client, &OtherService::Stub::Nothing, text(""));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kUnsupported);
  EXPECT_NE(reply.error().message.find("rt.test.OtherService.Nothing"), std::string::npos)
      << reply.error().message;
}

TEST_P(RpcTest, ACallEndsAtItsTimeoutAndALateAnswerIsDropped) {
  auto client = connect(tcp_target());
  CallOptions options;
  options.timeout_us = 20'000;
  int64_t start = loop.now_us();
  auto reply = call(*client, &Stub::Hold, text(""), std::move(options));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kTimeout);
  EXPECT_NE(reply.error().message.find("Hold"), std::string::npos);
  EXPECT_GE(loop.now_us() - start, 20'000);
  ASSERT_EQ(echo.held.size(), 1u);
  echo.held.front().done->Run();
  echo.held.clear();
  EXPECT_TRUE(call(*client, &Stub::Echo, text("ok")));
}

TEST_P(RpcTest, ALostConnectionEndsItsCallsInOrderThenTellsItsOwner) {
  auto client = connect(tcp_target());
  std::string order;
  for (char c : {'a', 'b', 'c'}) {
    rpc::call(*client, &Stub::Hold, text(""), 60'000'000, [&, c](Result<Text> reply) {
      EXPECT_EQ(reply.error().code, Code::kUnavailable);
      order += c;
    });
  }
  client->set_closed_handler([&](const Error&) { order += '.'; });
  ASSERT_TRUE(driver.run_until([&] { return echo.held.size() == 3; }));
  peers[0]->close(make_error(Code::kInternal, "test"));
  ASSERT_TRUE(driver.run_until([&] { return order.size() == 4; }));
  EXPECT_EQ(order, "abc.");
  EXPECT_FALSE(client->is_open());
  // After the loss, both answering and calling are harmless.
  for (auto& held : echo.held) held.done->Run();
  echo.held.clear();
  EXPECT_EQ(call(*client, &Stub::Echo, text("")).error().code, Code::kUnavailable);
  rpc::notify(*client, &Stub::Note, text("lost"));
  client->begin_flat(1).append("lost");
  client->end_flat();
  client->flush();
}

TEST_P(RpcTest, ClosingFromInsideAnAnswerIsSafe) {
  auto client = connect(tcp_target());
  int ended = 0, closed = 0;
  client->set_closed_handler([&](const Error&) { ++closed; });
  for (int i = 0; i < 10; ++i) {
    rpc::call(*client, &Stub::Echo, text(""), -1, [&](Result<Text> reply) {
      ++ended;
      if (!reply) return;
      client->close(make_error(Code::kCancelled, "enough"));
      client.reset();
    });
  }
  ASSERT_TRUE(driver.run_until([&] { return ended == 10; }));
  EXPECT_EQ(closed, 1);
  expect_alive();
}

TEST_P(RpcTest, FlatFramesAreBuiltAndReadInPlace) {
  auto client = connect(unix_target());
  std::vector<std::pair<uint32_t, std::string>> seen;
  peers[0]->set_flat_handler(
      [&](uint32_t type, Bytes body) { seen.emplace_back(type, std::string(as_view(body))); });
  for (uint32_t i = 0; i < 100; ++i) {
    client->begin_flat(i).append(std::string(i * 10, 'f'));
    client->end_flat();
    if (i == 50) rpc::notify(*client, &Stub::Note, text("between"));
  }
  client->flush();
  ASSERT_TRUE(driver.run_until([&] { return seen.size() == 100; }));
  for (uint32_t i = 0; i < 100; ++i)
    EXPECT_EQ(seen[i], std::make_pair(i, std::string(i * 10, 'f')));
  EXPECT_EQ(echo.notes.size(), 1u);
}

TEST_P(RpcTest, ACongestedConnectionDrains) {
  auto client = connect(tcp_target());
  size_t received = 0;
  peers[0]->set_flat_handler([&](uint32_t, Bytes body) { received += body.size(); });
  for (int i = 0; i < 16; ++i) {
    client->begin_flat(1).append(std::string(1 << 20, 'x'));
    client->end_flat();
  }
  EXPECT_GT(client->queued_bytes(), net::kHighWaterBytes);
  ASSERT_TRUE(driver.run_until([&] { return received == size_t{16} << 20; }));
  EXPECT_EQ(client->queued_bytes(), 0u);
}

TEST_P(RpcTest, AMessageOverTheLimitFailsBeforeItIsSent) {
  auto client = connect(tcp_target());
  CallOptions options;
  auto huge = std::make_shared<std::string>();
  options.attachment = {
      Bytes(reinterpret_cast<const uint8_t*>(huge->data()), size_t{rpc::kMaxFrameBytes} + 1),
      huge};  // The bytes are never read.
  auto reply = call(*client, &Stub::Echo, text(""), std::move(options));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kInvalid);
  EXPECT_TRUE(call(*client, &Stub::Echo, text("fine")));
}

TEST_P(RpcTest, ALoopThatEndsInTheMiddleOfAHelloClosesItsSocket) {
  for (int64_t timeout_us : {int64_t{-1}, int64_t{5'000'000}}) {
    auto other = std::make_unique<LoopDriver>(GetParam());
    bool called = false;
    rpc::connect(other->loop(), unix_target(), {"driver", "driver-id", "", "secret", "job"},
                 timeout_us, [&](auto) { called = true; });
    // The client's hello is sent, and the answer to it is never read.
    for (int i = 0; i < 100 && server->connections().empty(); ++i) {
      other->turn();
      driver.run_until([&] { return !server->connections().empty(); }, 10'000);
    }
    ASSERT_FALSE(server->connections().empty());
    other.reset();
    EXPECT_FALSE(called);
    EXPECT_TRUE(driver.run_until([&] { return server->connections().empty(); }));
  }
}

TEST_P(RpcTest, TheServersEndClosesItsConnections) {
  auto client = connect(tcp_target());
  bool closed = false;
  client->set_closed_handler([&](const Error&) { closed = true; });
  peers.clear();
  server.reset();
  ASSERT_TRUE(driver.run_until([&] { return closed; }));
  EXPECT_NE(::access(socket_path().c_str(), F_OK), 0);
  serve(options);
  expect_alive();
}

}  // namespace
}  // namespace rt::test
