// Calls to actors that the head does not know, or may not know any more.
#include "tests/unit/worker/actor_calls_fixture.h"

namespace rt::worker {
namespace {

TEST_F(ActorCallsTest, AnActorTheHeadDoesNotKnowIsDead) {
  call();
  calls.actor_unknown(id, now);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorDied));
}

TEST_F(ActorCallsTest, AnActorThatAnotherProcessMayBeMakingIsWaitedForWhileThatMayTake) {
  sink.maker = ActorSink::Maker::kAnother;
  call();
  calls.actor_unknown(id, now);
  const int64_t since_us = now.steady_us;
  while (sink.failed.empty()) {
    const size_t asked = sink.asked.size();
    wait_for_tick();
    ASSERT_EQ(sink.asked.size(), asked + 1);
    calls.query_answered(id, nullptr, now);
    calls.check_invariants();
  }
  EXPECT_GE(now.steady_us - since_us, settings.node_timeout_ms * 1000);
  EXPECT_LT(now.steady_us - since_us, settings.node_timeout_ms * 1000 + 1'000'000);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorDied));
}

TEST_F(ActorCallsTest, AnActorThatAnotherProcessWasMakingIsUsedOnceItIsThere) {
  sink.maker = ActorSink::Maker::kAnother;
  call();
  calls.actor_unknown(id, now);
  wait_for_tick();
  answer(proto::ACTOR_PENDING, 1);
  EXPECT_EQ(calls.next_tick_us(), -1) << "the head tells what comes";
  alive();
  EXPECT_EQ(sink.pushed.size(), 1u);
}

TEST_F(ActorCallsTest, AnActorThatThisProcessIsMakingIsWaitedFor) {
  sink.maker = ActorSink::Maker::kThisProcess;
  call();
  calls.actor_unknown(id, now);
  EXPECT_EQ(calls.next_tick_us(), -1);
  EXPECT_TRUE(sink.failed.empty());
}

// A head that was started again may not know the actor any more, and then says nothing of it.
TEST_F(ActorCallsTest, ANewHeadIsAskedForTheActorsThatWaitForItsWord) {
  for (proto::ActorState state : {proto::ACTOR_PENDING, proto::ACTOR_RESTARTING}) {
    id = make_actor_id(job_id_from_int(1), 100 + state, 1);
    calls.link(id);
    update(state, 1);
    Task* waiting = call(-1);
    calls.subscriptions_renewed(now);
    sink.asked.clear();
    wait_for_tick();
    EXPECT_EQ(sink.asked, std::vector<ActorId>{id});
    calls.query_failed(id, now);
    wait_for_tick();
    calls.query_answered(id, nullptr, now);
    ASSERT_FALSE(sink.failed.empty());
    EXPECT_EQ(sink.failed.back().first, waiting);
  }
}

TEST_F(ActorCallsTest, ANewHeadIsNotAskedForActorsThatAreConnected) {
  call();
  alive();
  calls.subscriptions_renewed(now);
  EXPECT_EQ(calls.next_tick_us(), -1);
}

}  // namespace
}  // namespace rt::worker
