// Demands of an owner, and the leases that it gets and gives back.
#include "submitter_fixture.h"

namespace rt::worker {
namespace {

TEST_F(SubmitterTest, FirstTaskAsksForOneLeaseAndIsPushedWhenGranted) {
  Task* task = submit();
  ASSERT_EQ(sink.demands.size(), 1u);
  EXPECT_EQ(sink.demands[0].want, 1);
  EXPECT_TRUE(sink.demands[0].node.is_nil());
  sink.clear();
  uint64_t key = grant(7);
  ASSERT_EQ(sink.pushed.size(), 1u);
  EXPECT_EQ(sink.pushed[0].second, task);
  sink.clear();
  finish(key, task, 10);
  EXPECT_TRUE(sink.empty());
}

TEST_F(SubmitterTest, AWorkerThatLeavesGetsNothingMoreAndItsLeaseEnds) {
  function.alone = true;
  Task* first = submit();
  function.average_us = 1;  // So short that further tasks would be pipelined behind it.
  Task* second = submit();
  uint64_t key = grant(1);
  ASSERT_EQ(sink.pushed.size(), 1u);
  submitter.worker_leaves(key);
  finish(key, first, 1);
  EXPECT_EQ(sink.pushed.size(), 1u);
  EXPECT_EQ(sink.returned, std::vector<uint64_t>{1});
  key = grant(2);
  ASSERT_EQ(sink.pushed.size(), 2u);
  EXPECT_EQ(sink.pushed[1].second, second);
  submitter.worker_leaves(key);
  submitter.retry(key, second, Submitter::Cost::kRetry,
                  now);  // The task raised and has retries left, for another worker.
  EXPECT_EQ(sink.returned, (std::vector<uint64_t>{1, 2}));
  key = grant(3);
  finish(key, second, 1);
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, ARevokedLeaseGoesBackWhenItsTaskIsRetried) {
  Task* task = submit();
  uint64_t key = grant(1);
  submitter.leases_revoked(NodeKey::nil(), {1});
  submitter.retry(key, task, Submitter::Cost::kRetry, now);
  EXPECT_EQ(sink.returned, std::vector<uint64_t>{1});
  key = grant(2);
  finish(key, task, 1);
}

TEST_F(SubmitterTest, ARevokedLeaseGoesBackWhenItsWorkerReturnsTheLastTask) {
  Task* task = submit();
  uint64_t key = grant(1);
  submitter.leases_revoked(NodeKey::nil(), {1});
  submitter.task_returned(key, task, now);
  EXPECT_EQ(sink.returned, std::vector<uint64_t>{1});
  key = grant(2);
  finish(key, task, 1);
}

TEST_F(SubmitterTest, AnIdleLeaseGoesBackInTimeAlthoughAnotherNodeWasAsked) {
  Task* first = submit();
  Task* second = submit();
  uint64_t key = grant(1);
  Rng rng(1);
  const NodeId other = NodeId::random(rng);
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, other, 1, 0, now);
  pass(settings.lease_idle_timeout_ms * 1000);
  submitter.tick(now);  // The lease is in use.
  pass(1);
  finish(key, first, 1'000'000);
  finish(key, second, 1'000'000);
  pass(settings.lease_idle_timeout_ms * 1000);
  EXPECT_LE(submitter.next_tick_us(), now.steady_us);
  submitter.tick(now);
  EXPECT_EQ(sink.returned, std::vector<uint64_t>{1});
}

TEST_F(SubmitterTest, DemandSentToANodeThatBringsNothingComesBackEvenWithoutLeases) {
  Task* task = submit();
  Rng rng(1);
  NodeKey other = NodeId::random(rng);
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, other, 1, 101, now);
  EXPECT_GT(submitter.next_tick_us(), now.steady_us);
  sink.clear();
  pass(3'000'000);
  submitter.tick(now);
  ASSERT_FALSE(sink.demands.empty());
  EXPECT_TRUE(sink.demands.back().node.is_nil());
  EXPECT_EQ(sink.demands.back().want, 1);
  uint64_t key = grant(1);
  finish(key, task, 5);
}

TEST_F(SubmitterTest, IdleLeaseIsReturnedAfterTheTimeout) {
  Task* task = submit();
  uint64_t key = grant(9);
  finish(key, task, 5);
  sink.clear();
  submitter.tick(now);
  const int64_t idle_us = settings.lease_idle_timeout_ms * 1000;
  EXPECT_EQ(submitter.next_tick_us(), now.steady_us + idle_us);
  EXPECT_TRUE(sink.empty());
  pass(idle_us - 1);
  submitter.tick(now);
  EXPECT_TRUE(sink.empty());
  pass(1);
  submitter.tick(now);
  EXPECT_EQ(sink.returned, std::vector<uint64_t>{9});
  EXPECT_EQ(submitter.next_tick_us(), -1) << "nothing is left to look at";
}

TEST_F(SubmitterTest, IdleLeaseTakesBackUnstartedWork) {
  function.average_us = 400;
  std::vector<Task*> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(submit());
  uint64_t a = grant(1);
  ASSERT_EQ(sink.pushed.size(), 10u);
  sink.clear();
  EXPECT_GT(function.scheduling_class->unstarted_in_flight, 0);
  uint64_t b = grant(2);
  ASSERT_EQ(sink.taken_back.size(), 1u);
  EXPECT_EQ(sink.taken_back[0].first, a);
  EXPECT_EQ(sink.taken_back[0].second, 5);
  sink.clear();
  submitter.task_returned(a, tasks[9], now);
  submitter.check_invariants();
  ASSERT_EQ(sink.pushed.size(), 1u);
  EXPECT_EQ(sink.pushed[0].first, b);
}

TEST_F(SubmitterTest, RevokedLeaseGoesBackWhenItsTaskIsDone) {
  Task* task = submit();
  uint64_t key = grant(5);
  sink.clear();
  submitter.leases_revoked(NodeKey::nil(), {5});
  EXPECT_TRUE(sink.returned.empty());
  finish(key, task, 10);
  EXPECT_EQ(sink.returned, std::vector<uint64_t>{5});
}

TEST_F(SubmitterTest, RedirectMovesDemandAndIsWithdrawnWhenNothingComes) {
  function.average_us = 1'000'000;
  for (int i = 0; i < 64; ++i) submit();
  sink.clear();
  NodeId other;
  other.data()[0] = 1;
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, other, 2, 101, now);
  ASSERT_FALSE(sink.demands.empty());
  EXPECT_EQ(sink.demands[0].node, other);
  EXPECT_EQ(sink.demands[0].want, 2);
  sink.clear();
  pass(3'000'000);
  submitter.tick(now);
  ASSERT_FALSE(sink.demands.empty());
  EXPECT_EQ(sink.demands[0].node, other);
  EXPECT_EQ(sink.demands[0].want, 0);
}

TEST_F(SubmitterTest, ARedirectOfALeavingNodeMovesWhatThatNodeWasAskedFor) {
  function.average_us = 1'000'000;
  for (int i = 0; i < 64; ++i) submit();
  NodeId leaving, other;
  leaving.data()[0] = 1;
  other.data()[0] = 2;
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, leaving, 2, 101, now);
  const int local = function.scheduling_class->local_want;
  sink.clear();
  submitter.redirected(leaving, function.scheduling_class->id, other, 2, 7, now);
  ASSERT_EQ(sink.demands.size(), 1u);
  EXPECT_EQ(sink.demands[0].node, other);
  EXPECT_EQ(sink.demands[0].want, 2);
  EXPECT_EQ(function.scheduling_class->local_want, local);
  sink.clear();
  submitter.redirected(leaving, function.scheduling_class->id, other, 1, 8, now);
  EXPECT_TRUE(sink.demands.empty()) << "nothing is wanted of it any more";
}

TEST_F(SubmitterTest, ARedirectOfALeavingNodeToTheLocalOneRaisesTheDemandThere) {
  function.average_us = 1'000'000;
  for (int i = 0; i < 64; ++i) submit();
  const int before = function.scheduling_class->local_want;
  NodeId leaving;
  leaving.data()[0] = 1;
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, leaving, 2, 101, now);
  ASSERT_EQ(function.scheduling_class->local_want, before - 2);
  sink.clear();
  submitter.redirected(leaving, function.scheduling_class->id, NodeKey::nil(), 2, 7, now);
  ASSERT_EQ(sink.demands.size(), 1u);
  EXPECT_TRUE(sink.demands[0].node.is_nil());
  EXPECT_EQ(sink.demands[0].want, before);
  EXPECT_TRUE(function.scheduling_class->remotes.empty());
}

TEST_F(SubmitterTest, ANodeThatCannotBeReachedIsToldThatNothingIsWantedOfIt) {
  submit();
  Rng rng(1);
  const NodeId other = NodeId::random(rng);
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, other, 1, 0, now);
  sink.clear();
  submitter.node_gone(other);  // A later demand may have reached it all the same.
  ASSERT_EQ(sink.demands.size(), 2u);
  EXPECT_EQ(sink.demands[0].node, other);
  EXPECT_EQ(sink.demands[0].want, 0);
  EXPECT_TRUE(sink.demands[1].node.is_nil());
}

}  // namespace
}  // namespace rt::worker
