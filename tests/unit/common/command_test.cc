// Commands of a process: the table, and calls of them over RPC.
#include <condition_variable>
#include <mutex>
#include <optional>

#include "observability/command_service/command_service.h"
#include "tests/unit/common/rpc_fixture.h"

namespace rt::test {
namespace {

using command::Command;
using command::Commands;
using Execute = proto::CommandService::Stub;

std::shared_ptr<const Command> answering(const std::string& text) {
  return std::make_shared<const Command>(
      [text](const std::string& json) -> Result<std::string> { return text + json; });
}

// Holds commands until it is opened.
class Gate {
 public:
  std::shared_ptr<const Command> command() {
    return std::make_shared<const Command>([this](const std::string& json) {
      std::unique_lock lock(mutex_);
      ++begun_;
      changed_.wait(lock, [this] { return open_; });
      ++ended_;
      changed_.notify_all();
      return Result<std::string>(json);
    });
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  int begun() {
    std::lock_guard lock(mutex_);
    return begun_;
  }
  void wait_for_end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ == begun_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int begun_ = 0, ended_ = 0;
};

class CommandTest : public RpcTest {
 protected:
  void SetUp() override {
    commands_server.emplace(driver.loop(), &commands);
    options.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
      connection->add_service(&*commands_server);
      peers.push_back(connection);
    };
    serve(options);
  }
  void TearDown() override { commands_server.reset(); }

  using Answer = std::optional<Result<proto::ProcessAnswer>>;
  std::shared_ptr<Answer> begin(rpc::Connection& connection, const std::string& name,
                                const std::string& json) {
    auto answer = std::make_shared<Answer>();
    proto::ProcessCommand request;
    request.set_name(name);
    request.set_json(json);
    rpc::call(connection, &Execute::Execute, request, 10'000'000,
              [answer](Result<proto::ProcessAnswer> got) { *answer = std::move(got); });
    return answer;
  }
  Result<proto::ProcessAnswer> end(const std::shared_ptr<Answer>& answer) {
    if (!driver.run_until([&] { return answer->has_value(); }))
      return make_error(Code::kTimeout, "the test waits no longer");
    return std::move(**answer);
  }

  Commands commands;
  std::optional<command::CommandServer> commands_server;
};

TEST_P(CommandTest, ANameHasOneCommandUntilItIsRemoved) {
  auto client = connect(tcp_target());
  commands.set("greet", answering("a"));
  EXPECT_EQ(end(begin(*client, "greet", "1"))->json(), "a1");
  commands.set("greet", answering("b"));
  EXPECT_EQ(end(begin(*client, "greet", "2"))->json(), "b2");
  commands.set("greet", nullptr);
  auto gone = end(begin(*client, "greet", "3"));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
  EXPECT_EQ(gone.error().message, "this process has no command 'greet'");
}

TEST_P(CommandTest, WhatACommandSaysOfAWrongRequestComesBack) {
  auto client = connect(tcp_target());
  commands.set("refuse", std::make_shared<const Command>([](const std::string&) {
                 return Result<std::string>(make_error(Code::kInvalid, "no such rank"));
               }));
  auto refused = end(begin(*client, "refuse", "{}"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_EQ(refused.error().message, "no such rank");
}

TEST_P(CommandTest, OthersAreAnsweredMeanwhileUpToALimit) {
  Gate gate;
  commands.set("wait", gate.command());
  commands.set("greet", answering("hello "));
  auto client = connect(tcp_target());
  std::vector<std::shared_ptr<Answer>> waiting;
  for (int i = 0; i < 7; ++i) waiting.push_back(begin(*client, "wait", std::to_string(i)));
  EXPECT_EQ(end(begin(*client, "greet", "you"))->json(), "hello you");
  waiting.push_back(begin(*client, "wait", "7"));
  auto refused = end(begin(*client, "greet", "you"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  gate.open();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(end(waiting[i])->json(), std::to_string(i));
  EXPECT_EQ(end(begin(*client, "greet", "you"))->json(), "hello you");
}

TEST_P(CommandTest, TheServerMayEndBeforeACommand) {
  Gate gate;
  commands.set("wait", gate.command());
  auto client = connect(tcp_target());
  auto answer = begin(*client, "wait", "");
  ASSERT_TRUE(driver.run_until([&] { return gate.begun() == 1; }));
  for (auto& peer : peers) peer->close(make_error(Code::kUnavailable, "the process ends"));
  commands_server.reset();
  gate.open();
  gate.wait_for_end();
  auto broken = end(answer);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Code::kUnavailable);
}

TEST_P(CommandTest, CallsUnderWayAreRefusedWhenTheServerEnds) {
  Gate gate;
  commands.set("wait", gate.command());
  auto client = connect(tcp_target());
  auto answer = begin(*client, "wait", "");
  ASSERT_TRUE(driver.run_until([&] { return gate.begun() == 1; }));
  commands_server.reset();
  auto refused = end(answer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_EQ(refused.error().message, "the process ends");
  gate.open();
  gate.wait_for_end();
}

INSTANTIATE_TEST_SUITE_P(Loops, CommandTest, ::testing::Values(LoopKind::kAsio, LoopKind::kPoll),
                         [](const auto& kind) { return loop_name(kind.param); });

}  // namespace
}  // namespace rt::test
