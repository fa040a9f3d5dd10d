// Callers that want the same connection at once share one attempt and its outcome.
#include "common/rpc/dialer.h"

#include <optional>

#include "tests/unit/common/rpc_fixture.h"

namespace rt::test {
namespace {

using rpc::Connection;
using Outcome = Result<std::shared_ptr<Connection>>;

class DialerTest : public RpcTest {
 protected:
  DialerTest() { begin(); }
  void begin() {
    dialer.emplace(loop, 60'000'000,
                   [this](const std::string& key, const std::shared_ptr<Connection>& connection) {
                     events.push_back("opened " + key);
                     return connection;
                   });
  }
  void dial(const std::string& key, const rpc::Target& target, const std::string& caller) {
    dialer->dial(key, target, me, [this, caller](const Outcome& outcome) {
      events.push_back(caller + (outcome ? " connected" : " failed"));
      outcomes.push_back(outcome);
    });
  }
  bool run_to(size_t count) {
    return driver.run_until([&] { return events.size() >= count; });
  }
  // Turns the loop until whatever was under way has ended.
  void settle() {
    ASSERT_TRUE(connect(unix_target()));
    ASSERT_TRUE(connect(tcp_target()));
  }

  const rpc::Identity me{"driver", "driver-id", "", "secret", ""};
  std::vector<std::string> events;
  std::vector<Outcome> outcomes;
  std::optional<rpc::Dialer<std::string>> dialer;
};
INSTANTIATE_TEST_SUITE_P(Loops, DialerTest, ::testing::Values(LoopKind::kAsio, LoopKind::kPoll),
                         [](const auto& info) { return loop_name(info.param); });

using Events = std::vector<std::string>;

TEST_P(DialerTest, AllWhoWaitGetTheSameConnection) {
  for (const char* caller : {"one", "two", "three"}) dial("server", unix_target(), caller);
  EXPECT_EQ(dialer->waiting("server"), 3u);
  EXPECT_EQ(dialer->waiting("other"), 0u);
  EXPECT_EQ(events, Events{}) << "somebody was called from inside dial()";
  ASSERT_TRUE(run_to(4));
  EXPECT_EQ(events, (Events{"opened server", "one connected", "two connected", "three connected"}));
  EXPECT_EQ(*outcomes[0], *outcomes[1]);
  EXPECT_EQ(*outcomes[0], *outcomes[2]);
  EXPECT_EQ(dialer->waiting("server"), 0u);
  settle();
  // One of the Dialer, two of settle().
  EXPECT_EQ(peers.size(), 3u);
}

TEST_P(DialerTest, AnotherPeerHasAnAttemptOfItsOwn) {
  dial("a", unix_target(), "one");
  dial("b", tcp_target(), "two");
  ASSERT_TRUE(run_to(4));
  EXPECT_NE(*outcomes[0], *outcomes[1]);
}

TEST_P(DialerTest, AFailureIsToldToAllAndTheNextCallerTriesAgain) {
  rpc::Target nobody{net::Address::unix_socket(dir.path("nobody")), "self", ""};
  dial("server", nobody, "one");
  dial("server", nobody, "two");
  ASSERT_TRUE(run_to(2));
  EXPECT_EQ(events, (Events{"one failed", "two failed"}));
  EXPECT_EQ(outcomes[0].error().message, outcomes[1].error().message);
  events.clear();
  dial("server", unix_target(), "three");
  ASSERT_TRUE(run_to(2));
  EXPECT_EQ(events, (Events{"opened server", "three connected"}));
}

TEST_P(DialerTest, WhoAsksAgainFromItsCallbackBeginsANewAttempt) {
  rpc::Target nobody{net::Address::unix_socket(dir.path("nobody")), "self", ""};
  dialer->dial("server", nobody, me, [this](const Outcome& outcome) {
    EXPECT_FALSE(outcome);
    dial("server", unix_target(), "again");
    EXPECT_EQ(dialer->waiting("server"), 1u);
  });
  dial("server", nobody, "two");
  ASSERT_TRUE(run_to(3));
  EXPECT_EQ(events, (Events{"two failed", "opened server", "again connected"}));
}

TEST_P(DialerTest, ACallerThatGaveUpKeepsNobodyElseFromTheConnection) {
  auto caller = std::make_shared<std::string>("one");
  dialer->dial("server", unix_target(), me,
               [this, weak = std::weak_ptr<std::string>(caller)](const Outcome&) {
                 events.push_back(weak.expired() ? "nobody" : "one");
               });
  dial("server", unix_target(), "two");
  caller.reset();
  ASSERT_TRUE(run_to(3));
  EXPECT_EQ(events, (Events{"opened server", "nobody", "two connected"}));
}

TEST_P(DialerTest, NobodyIsCalledAfterClose) {
  dial("server", unix_target(), "one");
  dialer->close();
  EXPECT_EQ(dialer->waiting("server"), 0u);
  settle();
  EXPECT_EQ(events, Events{});
  // The attempt that was closed is not taken for the next one.
  dial("server", unix_target(), "two");
  dialer->close();
  dial("server", unix_target(), "three");
  ASSERT_TRUE(run_to(2));
  settle();
  EXPECT_EQ(events, (Events{"opened server", "three connected"}));
}

TEST_P(DialerTest, ACallbackMayEndTheDialer) {
  dialer->dial("server", unix_target(), me, [this](const Outcome& outcome) {
    EXPECT_TRUE(outcome);
    dialer.reset();
  });
  dial("server", unix_target(), "two");
  ASSERT_TRUE(run_to(2));
  EXPECT_FALSE(dialer);
  begin();
  dial("server", unix_target(), "three");
  dialer.reset();
  settle();
  EXPECT_EQ(events, (Events{"opened server", "two connected"}));
}

}  // namespace
}  // namespace rt::test
