// The connections of a worker while nobody answers: HeadConnection, NodeDirectory and PeerLinks.
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/unit/worker/manual_loop.h"
#include "worker/service/head_connection.h"
#include "worker/service/node_directory.h"
#include "worker/service/peer_links.h"

namespace rt::worker {
namespace {

class ConnectionsTest : public testing::Test {
 protected:
  ConnectionsTest() {
    options_.is_driver = true;
    options_.settings.head_reconnect_timeout_ms = 1000;
    context_.head_address = "127.0.0.1:1";
    context_.node_id = NodeId::random(rng_);
  }
  // Counts the answers, and remembers the last error.
  auto answer() {
    return [this](const auto& result) {
      ++answers_;
      if (!result) error_ = result.error();
    };
  }

  Rng rng_{1};
  test::ManualLoop loop_;
  Options options_;
  Context context_;
  Self self_{options_, context_};
  std::atomic<bool> stopping_{false};
  Notices notices_{options_, context_, [] {}};
  int answers_ = 0;
  Error error_;
};

TEST_F(ConnectionsTest, WhoeverAsksTheHeadWaitsUntilItIsGivenUp) {
  HeadConnection head(loop_, options_, context_, self_, stopping_, notices_,
                      {.opened = [](const auto&) {}, .needed = [] { return false; }});
  head.with(answer());
  head.with(answer());
  EXPECT_EQ(loop_.attempts.size(), 1U);
  EXPECT_FALSE(head.is_lost());
  for (int i = 0; i < 9; ++i) {
    loop_.refuse_all();
    EXPECT_TRUE(head.is_lost());
    EXPECT_EQ(answers_, 0);
    loop_.advance(100'000);
    ASSERT_EQ(loop_.attempts.size(), 1U) << i;
  }
  loop_.refuse_all();
  loop_.advance(100'000);
  loop_.refuse_all();
  EXPECT_EQ(answers_, 2);
  EXPECT_TRUE(error_.message.starts_with("the cluster's head at 127.0.0.1:1 could not be reached"))
      << error_.message;
  EXPECT_FALSE(loop_.has_timers());
}

TEST_F(ConnectionsTest, NobodyWaitsForTheHeadAfterTheEndOfTheSession) {
  HeadConnection head(loop_, options_, context_, self_, stopping_, notices_,
                      {.opened = [](const auto&) {}, .needed = [] { return true; }});
  head.with(answer());
  stopping_ = true;
  loop_.refuse_all();
  EXPECT_EQ(answers_, 1);
}

TEST_F(ConnectionsTest, AnActorIsKeptOnce) {
  HeadConnection head(loop_, options_, context_, self_, stopping_, notices_, {});
  const ActorId id = ActorId::random(rng_);
  EXPECT_TRUE(head.keep_actor(id));
  EXPECT_FALSE(head.keep_actor(id));
  head.forget_actor(id);
  EXPECT_TRUE(head.keep_actor(id));
}

TEST_F(ConnectionsTest, ANodeOutsideTheClusterIsNotAsked) {
  NodeDirectory nodes(loop_, options_, context_, self_, {});
  nodes.with(NodeId::random(rng_), answer());
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(error_.code, Code::kNodeDied);
  nodes.with(NodeId::nil(), answer());
  nodes.with(context_.node_id, answer());
  EXPECT_EQ(answers_, 3);
  EXPECT_EQ(error_.code, Code::kUnavailable);
  EXPECT_TRUE(loop_.attempts.empty());
}

TEST_F(ConnectionsTest, WhoeverAsksForANodeSharesTheAttempt) {
  NodeDirectory nodes(loop_, options_, context_, self_, {});
  proto::Node node;
  const NodeId id = NodeId::random(rng_);
  node.set_node_id(id.binary());
  node.set_ip("127.0.0.1");
  node.set_port(1);
  node.set_alive(true);
  nodes.update(node);
  nodes.with(id, answer());
  nodes.with(id, answer());
  EXPECT_EQ(loop_.attempts.size(), 1U);
  loop_.refuse_all();
  EXPECT_EQ(answers_, 2);
  node.set_alive(false);
  nodes.update(node);
  EXPECT_EQ(nodes.find(id), nullptr);
}

TEST_F(ConnectionsTest, ANodeIsReportedAsGoneOnce) {
  std::vector<NodeId> gone;
  NodeDirectory nodes(loop_, options_, context_, self_,
                      {.opened = {}, .gone = [&](const NodeId& id) { gone.push_back(id); }});
  const NodeId id = NodeId::random(rng_);
  for (int i = 0; i < 3; ++i) nodes.report_gone_soon(id);
  EXPECT_TRUE(gone.empty());
  loop_.advance(50'000);
  EXPECT_EQ(gone, std::vector<NodeId>{id});
  nodes.report_gone_soon(id);
  loop_.advance(50'000);
  EXPECT_EQ(gone.size(), 2U);
}

TEST_F(ConnectionsTest, APeerOfThisNodeIsReachedAtItsSocket) {
  PeerLinks peers(loop_, options_, context_, self_, {});
  proto::WorkerAddress address;
  address.set_worker_id(WorkerId::random(rng_).binary());
  address.set_node_id(context_.node_id.binary());
  address.set_socket_path("/nowhere");
  address.set_ip("127.0.0.1");
  address.set_port(1);
  peers.with(address, answer());
  peers.with(address, answer());
  ASSERT_EQ(loop_.attempts.size(), 1U);
  EXPECT_EQ(loop_.attempts[0].address, net::Address::unix_socket("/nowhere"));
  loop_.refuse_all();
  EXPECT_EQ(answers_, 2);
  EXPECT_EQ(peers.find(WorkerId::from_binary(address.worker_id())), nullptr);
  address.set_node_id(NodeId::random(rng_).binary());
  peers.with(address, answer());
  ASSERT_EQ(loop_.attempts.size(), 1U);
  EXPECT_EQ(loop_.attempts[0].address, net::Address::tcp("127.0.0.1", 1));
}

}  // namespace
}  // namespace rt::worker
