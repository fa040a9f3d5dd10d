// HeadContact, with a head that is away, comes back, and refuses.
#include "worker/core/head_contact.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace rt::worker {
namespace {

class HeadContactTest : public testing::Test {
 protected:
  HeadContactTest() { settings_.head_reconnect_timeout_ms = 1000; }

  Now now() const { return {us_, 1'700'000'000'000'000 + us_}; }
  HeadContact::Turn fail(Code code = Code::kUnavailable) {
    return contact_.failed(make_error(code, "refused"), now());
  }
  // Moves the time to the next attempt, and returns how long that took.
  int64_t pause() {
    const int64_t since_us = us_;
    us_ = contact_.next_tick_us() - 1;
    EXPECT_FALSE(contact_.tick(now()).connect) << "too early";
    ++us_;
    EXPECT_TRUE(contact_.tick(now()).connect);
    EXPECT_EQ(contact_.next_tick_us(), -1);
    return us_ - since_us;
  }
  void connect() {
    EXPECT_TRUE(contact_.wanted().connect);
    contact_.connected();
  }

  Settings settings_;
  std::string head_ = "10.0.0.1:6379";
  int64_t us_ = 5'000'000;
  HeadContact contact_{settings_, head_};
  Rng rng_{1};
};

TEST_F(HeadContactTest, NothingIsTriedBeforeSomebodyAsks) {
  EXPECT_EQ(contact_.next_tick_us(), -1);
  EXPECT_FALSE(contact_.tick(now()).connect);
  EXPECT_FALSE(contact_.is_lost());
}

TEST_F(HeadContactTest, WhoeverAsksSharesTheAttempt) {
  EXPECT_TRUE(contact_.wanted().connect);
  EXPECT_FALSE(contact_.wanted().connect);
  fail();
  EXPECT_TRUE(contact_.wanted().connect) << "it does not wait for the next attempt";
  fail();
  EXPECT_EQ(pause(), 100'000);
  EXPECT_FALSE(contact_.wanted().connect);
}

TEST_F(HeadContactTest, AHeadThatIsAwayIsGivenUpAfterItsTime) {
  contact_.wanted();
  us_ += 3'000'000;  // That an attempt takes long is no failure yet.
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(fail().give_up) << i;
    EXPECT_TRUE(contact_.is_lost());
    EXPECT_EQ(pause(), 100'000);
  }
  const HeadContact::Turn turn = fail();
  ASSERT_TRUE(turn.give_up);
  EXPECT_EQ(turn.give_up->code, Code::kUnavailable);
  EXPECT_EQ(turn.give_up->message,
            "the cluster's head at 10.0.0.1:6379 could not be reached for 1 s: refused");
  EXPECT_EQ(contact_.next_tick_us(), -1);
  // A later question causes one attempt.
  EXPECT_TRUE(contact_.wanted().connect);
  EXPECT_TRUE(fail().give_up);
}

TEST_F(HeadContactTest, ASuccessBeginsTheTimeAnew) {
  contact_.wanted();
  fail();
  pause();
  contact_.connected();
  EXPECT_FALSE(contact_.is_lost());
  us_ += 60'000'000;
  EXPECT_TRUE(contact_.wanted().connect);
  EXPECT_FALSE(fail().give_up);
}

TEST_F(HeadContactTest, TheTimeOfALostHeadCountsFromItsLoss) {
  connect();
  contact_.lost(true, now());
  EXPECT_TRUE(contact_.is_lost());
  EXPECT_EQ(pause(), 50'000);
  us_ += 949'000;
  EXPECT_FALSE(fail().give_up);
  EXPECT_EQ(pause(), 100'000);
  EXPECT_TRUE(fail().give_up);
}

TEST_F(HeadContactTest, TheTimeInWhichNobodyAskedDoesNotCount) {
  connect();
  contact_.lost(false, now());
  us_ += 60'000'000;
  EXPECT_TRUE(contact_.wanted().connect);
  EXPECT_FALSE(fail().give_up) << "the head may have been back meanwhile";
  us_ += 2'000'000;
  EXPECT_TRUE(contact_.tick(now()).connect);
  EXPECT_TRUE(fail().give_up);
}

TEST_F(HeadContactTest, ALostHeadIsTriedAgainOnlyIfItIsNeeded) {
  connect();
  contact_.lost(false, now());
  EXPECT_EQ(contact_.next_tick_us(), -1);
  EXPECT_TRUE(contact_.is_lost());
  connect();
  const ActorId actor = ActorId::random(rng_);
  contact_.keep_actor(actor);
  contact_.lost(false, now());
  EXPECT_EQ(pause(), 50'000);
  contact_.connected();
  contact_.forget_actor(actor);
  contact_.lost(false, now());
  EXPECT_EQ(contact_.next_tick_us(), -1);
  connect();
  proto::SubscribeRequest logs;
  logs.set_logs_of_job("job");
  contact_.keep(logs);
  contact_.lost(false, now());
  EXPECT_EQ(pause(), 50'000);
}

TEST_F(HeadContactTest, ASuccessCancelsTheNextAttempt) {
  connect();
  contact_.lost(true, now());
  EXPECT_TRUE(contact_.wanted().connect);
  contact_.connected();
  EXPECT_EQ(contact_.next_tick_us(), -1);
}

TEST_F(HeadContactTest, AnErrorThatAnotherAttemptWouldRepeatIsToldAtOnce) {
  contact_.wanted();
  const HeadContact::Turn turn = fail(Code::kUnauthenticated);
  ASSERT_TRUE(turn.give_up);
  EXPECT_EQ(turn.give_up->code, Code::kUnauthenticated);
  EXPECT_EQ(turn.give_up->message, "refused");
  EXPECT_EQ(contact_.next_tick_us(), -1);
}

TEST_F(HeadContactTest, NobodyWaitsAtTheEndOfTheProcess) {
  contact_.wanted();
  EXPECT_FALSE(fail().give_up);
  contact_.stop();
  pause();
  EXPECT_TRUE(fail().give_up);
}

TEST_F(HeadContactTest, SubscriptionsAreRenewedOverEachConnection) {
  contact_.wanted();
  EXPECT_FALSE(contact_.connected()) << "there is none";
  proto::SubscribeRequest logs;
  logs.set_logs_of_job("job");
  logs.set_errors(true);
  contact_.keep(logs);
  const ActorId kept = ActorId::random(rng_), forgotten = ActorId::random(rng_);
  EXPECT_TRUE(contact_.keep_actor(kept));
  EXPECT_FALSE(contact_.keep_actor(kept));
  EXPECT_TRUE(contact_.keep_actor(forgotten));
  contact_.forget_actor(forgotten);
  for (int i = 0; i < 2; ++i) {
    contact_.lost(false, now());
    pause();
    const auto renewal = contact_.connected();
    ASSERT_TRUE(renewal);
    EXPECT_EQ(renewal->logs_of_job(), "job");
    EXPECT_TRUE(renewal->errors());
    ASSERT_EQ(renewal->actor_ids_size(), 1);
    EXPECT_EQ(renewal->actor_ids(0), kept.binary());
  }
  EXPECT_TRUE(contact_.keep_actor(forgotten));
}

TEST_F(HeadContactTest, ARefusedRenewalIsToldUnlessTheNextConnectionMendsIt) {
  EXPECT_FALSE(contact_.subscription_failed(make_error(Code::kUnavailable, "lost again")));
  const auto line = contact_.subscription_failed(make_error(Code::kInvalid, "too many actors"));
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->ends_with("does not tell this process of its actors: too many actors"));
}

}  // namespace
}  // namespace rt::worker
