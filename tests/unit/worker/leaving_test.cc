// Leaving: when a process that executes tasks may end.
#include "worker/core/leaving.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rt::worker {
namespace {

using Steps = std::vector<std::string>;

class LeavingTest : public testing::Test, private LineSink, private LeaveSink {
 protected:
  struct Caller : TaskChannel {};

  ~LeavingTest() override { EXPECT_EQ(done(), Steps{}); }

  void add() {
    auto task = std::make_shared<LineTask>();
    task->caller = &caller_;
    line_.add(task, 0, false);
  }
  void run() {
    ASSERT_TRUE(line_.next());
    line_.ended();
  }
  Steps done() { return std::exchange(done_, {}); }

  Caller caller_;
  bool holds_replies_ = false, is_needed_ = false;
  TaskLine line_{*this};
  Leaving leaving_{line_, *this};

 private:
  void fetch_arguments(const std::shared_ptr<LineTask>&) override {}
  void give_up_arguments(LineTask&) override {}
  void return_task(LineTask&) override { done_.push_back("return"); }
  void refuse_call(LineTask&) override { done_.push_back("refuse"); }
  void tell_blocked(bool) override {}
  bool holds_replies() const override { return holds_replies_; }
  bool is_needed() const override { return is_needed_; }
  void leave() override { done_.push_back("leave"); }
  void leave_at_once() override { done_.push_back("leave at once"); }
  void ask_to_end() override { done_.push_back("ask to end"); }

  Steps done_;
};

TEST_F(LeavingTest, AnIdleProcessLeavesAtOnce) {
  leaving_.look();
  EXPECT_FALSE(leaving_.is_free_to_go());
  EXPECT_EQ(done(), Steps{});
  leaving_.asked(true);
  EXPECT_EQ(done(), Steps{"leave"});
  EXPECT_TRUE(leaving_.ends());
  leaving_.look();
  leaving_.asked(true);
  EXPECT_EQ(done(), Steps{});
}

TEST_F(LeavingTest, AGracefulEndWaitsForTheTasksThatWaitAndRun) {
  add();
  leaving_.asked(true);
  EXPECT_TRUE(leaving_.is_graceful());
  EXPECT_FALSE(leaving_.ends());
  ASSERT_TRUE(line_.next());
  leaving_.look();
  EXPECT_EQ(done(), Steps{});
  line_.ended();
  leaving_.look();
  EXPECT_EQ(done(), Steps{"leave"});
}

TEST_F(LeavingTest, AGracefulEndWaitsForRepliesThatAreHeld) {
  holds_replies_ = true;
  leaving_.asked(true);
  EXPECT_EQ(done(), Steps{});
  EXPECT_FALSE(leaving_.is_free_to_go());
  holds_replies_ = false;
  EXPECT_TRUE(leaving_.is_free_to_go());
  leaving_.look();
  EXPECT_EQ(done(), Steps{"leave"});
}

TEST_F(LeavingTest, AGracefulEndWaitsForOthersThatNeedWhatItOwns) {
  is_needed_ = true;
  leaving_.asked(true);
  EXPECT_EQ(done(), Steps{});
  is_needed_ = false;
  leaving_.look();
  EXPECT_EQ(done(), Steps{"leave"});
}

TEST_F(LeavingTest, WhatAnActorOwnsEndsWithIt) {
  line_.become_actor(true);
  is_needed_ = true;
  leaving_.asked(true);
  EXPECT_EQ(done(), Steps{"leave"});
}

TEST_F(LeavingTest, AnEndAtOnceWaitsForNothing) {
  add();
  is_needed_ = holds_replies_ = true;
  leaving_.asked(false);
  EXPECT_EQ(done(), Steps{"leave at once"});
  EXPECT_TRUE(leaving_.ends());
  EXPECT_FALSE(leaving_.is_graceful());
}

TEST_F(LeavingTest, AGracefulEndMayBecomeAnEndAtOnce) {
  add();
  leaving_.asked(true);
  leaving_.asked(false);
  EXPECT_EQ(done(), Steps{"leave at once"});
  run();
  leaving_.look();
  EXPECT_EQ(done(), Steps{});
}

TEST_F(LeavingTest, AProcessLeavesAfterTheLastCallThatItMayRun) {
  int64_t calls = 0, others = 0;
  EXPECT_FALSE(leaving_.call_ended(2, calls));
  // Others do not count, nor do those of functions without a limit.
  EXPECT_FALSE(leaving_.call_ended(2, others));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(leaving_.call_ended(0, others));
  leaving_.look();
  EXPECT_EQ(done(), Steps{});
  add();
  EXPECT_TRUE(leaving_.call_ended(2, calls));
  leaving_.look();
  EXPECT_EQ(done(), Steps{});
  run();
  leaving_.look();
  EXPECT_EQ(done(), Steps{"leave"});
}

TEST_F(LeavingTest, TheCallsOfAnActorAreNotCounted) {
  line_.become_actor(true);
  int64_t calls = 0;
  EXPECT_FALSE(leaving_.call_ended(1, calls));
  leaving_.look();
  EXPECT_EQ(done(), Steps{});
}

TEST_F(LeavingTest, AnActorLeavesOnceAndRefusesWhatWaits) {
  line_.become_actor(true);
  add();
  ASSERT_TRUE(line_.next());
  add();
  leaving_.exit_actor();
  leaving_.exit_actor();
  EXPECT_EQ(done(), (Steps{"refuse", "ask to end"}));
  EXPECT_TRUE(leaving_.has_left());
  EXPECT_FALSE(leaving_.ends());
  // The node-manager knows why, and asks; the call that runs is answered first.
  leaving_.asked(true);
  add();
  EXPECT_EQ(done(), Steps{"refuse"});
  line_.ended();
  leaving_.look();
  EXPECT_EQ(done(), Steps{"leave"});
}

TEST_F(LeavingTest, AProcessThatEndsForAnotherReasonDoesNotLeave) {
  leaving_.end();
  EXPECT_TRUE(leaving_.ends());
  leaving_.asked(true);
  EXPECT_EQ(done(), Steps{});
}

}  // namespace
}  // namespace rt::worker
