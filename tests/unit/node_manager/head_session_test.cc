// HeadSession and HeadQueue, with a head that is away, refuses, and comes back.
#include "daemons/node_manager/core/head_session.h"

#include <gtest/gtest.h>

#include "daemons/node_manager/core/head_queue.h"

namespace rt::node {
namespace {

class HeadSessionTest : public testing::Test {
 protected:
  explicit HeadSessionTest(bool is_head_node = false)
      : session(settings, "10.0.0.1:6379", is_head_node) {
    settings.connect_timeout_ms = 2'000;
    settings.head_reconnect_timeout_ms = 10'000;
  }
  Now now() const { return {us, us}; }
  HeadSession::Turn fail(Code code = Code::kUnavailable) {
    return session.failed(make_error(code, "no"), now());
  }
  // Fails one attempt after the other until the session gives up. Returns how long that took.
  int64_t fail_to_the_end(Error* why) {
    const int64_t began_us = us;
    for (HeadSession::Turn turn = fail();; turn = fail()) {
      if (turn.give_up) {
        *why = *turn.give_up;
        return us - began_us;
      }
      us = session.next_tick_us();
      EXPECT_TRUE(session.tick(now()).connect);
    }
  }

  Settings settings;
  HeadSession session;
  int64_t us = 1'000'000;
};

class HeadsOwnNodeTest : public HeadSessionTest {
 protected:
  HeadsOwnNodeTest() : HeadSessionTest(true) {}
};

TEST_F(HeadSessionTest, PausesGrowUpToASecond) {
  EXPECT_TRUE(session.start(now()).connect);
  std::vector<int64_t> pauses;
  for (int i = 0; i < 7; ++i) {
    EXPECT_FALSE(fail().connect);
    pauses.push_back((session.next_tick_us() - us) / 1000);
    EXPECT_FALSE(session.tick(now()).connect);
    us = session.next_tick_us();
    EXPECT_TRUE(session.tick(now()).connect);
    EXPECT_EQ(session.next_tick_us(), -1) << "one attempt at a time";
  }
  EXPECT_EQ(pauses, (std::vector<int64_t>{20, 40, 80, 160, 320, 640, 1000}));
}

TEST_F(HeadSessionTest, AHeadThatWasNeverReachedIsGivenUpSooner) {
  session.start(now());
  Error why{};
  const int64_t first_us = fail_to_the_end(&why);
  EXPECT_GT(first_us, 2'000'000);
  EXPECT_LT(first_us, 4'000'000);
  EXPECT_NE(why.message.find("could not be reached for"), std::string::npos);
  EXPECT_TRUE(session.is_stopped());
  EXPECT_FALSE(fail().give_up) << "it gives up once";
}

TEST_F(HeadsOwnNodeTest, WaitsForASlowHeadAsForALostOne) {
  session.start(now());
  Error why{};
  EXPECT_GT(fail_to_the_end(&why), 10'000'000);
}

TEST_F(HeadSessionTest, ALostHeadGetsItsTimeFromItsLoss) {
  session.start(now());
  session.registered();
  EXPECT_TRUE(session.is_registered());
  us += 3'600'000'000;
  EXPECT_TRUE(session.lost(now()));
  EXPECT_FALSE(session.is_registered());
  Error why{};
  const int64_t again_us = fail_to_the_end(&why);
  EXPECT_GT(again_us, 10'000'000);
  EXPECT_LT(again_us, 12'000'000);
}

TEST_F(HeadSessionTest, AConnectionThatBreaksBeforeTheRegistrationIsNoNews) {
  session.start(now());
  us += 1'900'000;
  EXPECT_FALSE(session.lost(now()));
  EXPECT_FALSE(fail().give_up);
  us += 200'000;
  EXPECT_TRUE(fail().give_up) << "the time runs on";
}

TEST_F(HeadSessionTest, NothingIsTriedAgainThatCannotHelp) {
  session.start(now());
  const HeadSession::Turn turn = fail(Code::kUnauthenticated);
  ASSERT_TRUE(turn.give_up);
  EXPECT_EQ(turn.give_up->code, Code::kUnauthenticated);
  EXPECT_NE(turn.give_up->message.find("refuses this node"), std::string::npos);
}

TEST_F(HeadSessionTest, ARefusedRegistrationIsTheEndUnlessTheHeadIsAway) {
  session.start(now());
  EXPECT_TRUE(session.refused(make_error(Code::kTimeout, "late")).close);
  EXPECT_TRUE(session.refused(make_error(Code::kInvalid, "its id is taken")).give_up);
}

TEST_F(HeadSessionTest, AfterStopNothingFollows) {
  session.start(now());
  fail();
  session.stop();
  EXPECT_EQ(session.next_tick_us(), -1);
  us += 60'000'000;
  EXPECT_FALSE(session.tick(now()).connect);
  EXPECT_FALSE(fail().give_up);
}

class HeadQueueTest : public testing::Test {
 protected:
  void add(int number, HeadQueue::Until until = HeadQueue::Until::kDelivered) {
    auto send = [this, number](HeadQueue::Done done) {
      sent.push_back(number);
      unanswered.emplace_back(std::move(done));
    };
    queue.add(send, until);
  }
  // Answers the oldest request that has no answer yet.
  void answer(bool delivered) {
    HeadQueue::Done done = std::move(unanswered.front());
    unanswered.erase(unanswered.begin());
    done(delivered);
  }

  int64_t dropped = 0;
  HeadQueue queue{[this](int64_t count) { dropped = count; }};
  std::vector<int> sent;
  std::vector<HeadQueue::Done> unanswered;
};

TEST_F(HeadQueueTest, RequestsWaitForTheHead) {
  add(1);
  add(2);
  EXPECT_TRUE(sent.empty());
  queue.open();
  add(3);
  EXPECT_EQ(sent, (std::vector<int>{1, 2, 3}));
}

TEST_F(HeadQueueTest, WhatWasNotDeliveredIsRepeatedInItsOldPlace) {
  queue.open();
  for (int number : {1, 2, 3}) add(number);
  answer(true);
  queue.close();
  add(4);
  answer(false);
  answer(false);
  sent.clear();
  queue.open();
  EXPECT_EQ(sent, (std::vector<int>{2, 3, 4}));
}

TEST_F(HeadQueueTest, ARegistrationReplacesRequestsThatAreForTheOneBefore) {
  using Until = HeadQueue::Until;
  queue.registering();
  add(1, Until::kNextRegistration);  // Before the head has answered the registration.
  queue.open();
  add(2, Until::kNextRegistration);
  add(3);
  EXPECT_EQ(sent, (std::vector<int>{1, 2, 3}));
  queue.close();
  answer(true);
  answer(false);  // The connection broke, and the head may not have heard it.
  add(4, Until::kNextRegistration);
  queue.registering();
  answer(false);  // However late it is that this is known.
  add(5, Until::kNextRegistration);
  sent.clear();
  queue.open();
  EXPECT_EQ(sent, (std::vector<int>{3, 5}));
}

TEST_F(HeadQueueTest, OfTooManyTheOldestIsDropped) {
  for (int number = 0; number <= static_cast<int>(HeadQueue::kMostWaiting); ++number) add(number);
  EXPECT_EQ(dropped, 1);
  queue.open();
  EXPECT_EQ(sent.size(), HeadQueue::kMostWaiting);
  EXPECT_EQ(sent.front(), 1);
}

}  // namespace
}  // namespace rt::node
