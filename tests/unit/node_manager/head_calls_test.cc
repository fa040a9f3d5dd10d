// HeadCalls, with heads that hear the answer and heads that are gone.
#include "daemons/node_manager/core/head_calls.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace rt::node {
namespace {

class HeadCallsTest : public testing::Test {
 protected:
  proto::CreateActorRequest actor(int64_t epoch) const {
    proto::CreateActorRequest request;
    request.mutable_spec()->set_actor_id(id.binary());
    request.set_epoch(epoch);
    return request;
  }
  // Holds a CreateActor call whose head hears the answer or is gone.
  void hold(int64_t epoch, bool heard) {
    calls.hold(actor(epoch), [this, heard](const proto::CreateActorReply& reply) {
      pids.push_back(reply.pid());
      return heard;
    });
  }
  proto::CreateActorReply started(int pid) const {
    proto::CreateActorReply reply;
    reply.set_ok(true);
    reply.set_pid(pid);
    return reply;
  }

  const ActorId id = make_actor_id(job_id_from_int(1), 1, 1);
  HeadCalls calls;
  std::vector<int> pids;  // in the answers
};

TEST_F(HeadCallsTest, AHeadThatHearsTheAnswerNeedsNoReport) {
  hold(1, true);
  const HeadCalls::Unheard unheard = calls.actor_created(id, 1, started(7));
  EXPECT_EQ(pids, (std::vector<int>{7}));
  EXPECT_FALSE(unheard.started || unheard.died);
}

TEST_F(HeadCallsTest, ARepeatedCallIsAnsweredWithTheFirst) {
  hold(1, false);
  hold(1, true);
  const HeadCalls::Unheard unheard = calls.actor_created(id, 1, started(7));
  EXPECT_EQ(pids, (std::vector<int>{7, 7}));
  EXPECT_FALSE(unheard.started) << "the second head has heard it";
}

TEST_F(HeadCallsTest, AStartThatNobodyHearsIsReported) {
  hold(1, false);
  const HeadCalls::Unheard unheard = calls.actor_created(id, 1, started(7));
  ASSERT_TRUE(unheard.started);
  EXPECT_EQ(unheard.started->actor_id(), id.binary());
  EXPECT_EQ(unheard.started->epoch(), 1);
  EXPECT_EQ(unheard.started->pid(), 7);
  EXPECT_FALSE(unheard.died);
}

TEST_F(HeadCallsTest, AFailureThatNobodyHearsIsReported) {
  hold(2, true);
  proto::CreateActorReply reply;
  reply.mutable_failure()->set_message("no");
  const HeadCalls::Unheard unheard = calls.actor_created(id, 1, reply);
  EXPECT_TRUE(pids.empty()) << "this call waits for another incarnation";
  ASSERT_TRUE(unheard.died);
  EXPECT_EQ(unheard.died->epoch(), 1);
  EXPECT_EQ(unheard.died->death().message(), "no");
}

TEST_F(HeadCallsTest, ARefusalThatNobodyHearsIsOnlyForAHeadThatKnowsOfTheStart) {
  proto::CreateActorReply reply;
  reply.set_no_resources(true);
  const HeadCalls::Unheard unheard = calls.actor_created(id, 1, reply);
  EXPECT_FALSE(unheard.started || unheard.died);
  ASSERT_TRUE(unheard.refused);
  EXPECT_EQ(unheard.refused->epoch(), 1);
}

TEST_F(HeadCallsTest, ReservationsAreAnsweredOnce) {
  Rng rng(3);
  const GroupId group = GroupId::random(rng);
  proto::PrepareBundlesRequest request;
  request.set_group_id(group.binary());
  request.set_epoch(4);
  int answers = 0;
  for (int i = 0; i < 2; ++i) {
    calls.hold(request, [&](const proto::PrepareBundlesReply& reply) {
      answers += reply.ok();
      return true;
    });
  }
  proto::PrepareBundlesReply ok;
  ok.set_ok(true);
  calls.bundles_prepared(group, 3, ok);
  EXPECT_EQ(answers, 0);
  calls.bundles_prepared(group, 4, ok);
  calls.bundles_prepared(group, 4, ok);
  EXPECT_EQ(answers, 2);
}

}  // namespace
}  // namespace rt::node
