#include "worker/service/waiting.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/worker/manual_loop.h"

namespace rt::worker {
namespace {

class WaitingReportTest : public testing::Test {
 protected:
  using Told = std::vector<std::pair<int64_t, int64_t>>;

  test::ManualLoop loop_;
  TaskPool tasks_;
  int64_t held_back_ = 0, unstarted_ = 0;
  bool connected_ = true;
  Told told_;  // The tasks that wait for arguments, and the calls that wait for actors.
  WaitingReport report_{loop_,
                        tasks_,
                        {.held_back = [this] { return held_back_; },
                         .waiting_for_turn = [this](int64_t) { return unstarted_; },
                         .tell =
                             [this](int64_t for_arguments, int64_t for_actors) {
                               if (connected_) told_.emplace_back(for_arguments, for_actors);
                               return connected_;
                             }}};
};

TEST_F(WaitingReportTest, AnyNumberOfTasksIsOneMessage) {
  std::vector<Task*> waiting;
  for (int i = 0; i < 100; ++i) {
    waiting.push_back(tasks_.take());
    tasks_.await_argument(waiting.back());
    report_.arguments_changed();
  }
  EXPECT_TRUE(told_.empty());
  loop_.advance(500'000);
  EXPECT_EQ(told_, (Told{{100, 0}}));
  EXPECT_FALSE(loop_.has_timers());
  for (Task* task : waiting) {
    EXPECT_TRUE(tasks_.argument_ready(task));
    report_.arguments_changed();
    tasks_.give_back(task);
  }
  loop_.advance(500'000);
  EXPECT_EQ(told_, (Told{{100, 0}, {0, 0}}));
  EXPECT_FALSE(loop_.has_timers());
}

TEST_F(WaitingReportTest, CallsThatAreHeldBackAreToldUntilThereAreNone) {
  held_back_ = 3;
  report_.calls_held_back();
  loop_.advance(1'500'000);
  EXPECT_EQ(told_, (Told{{0, 3}, {0, 3}, {0, 3}}));
  held_back_ = 0;
  loop_.advance(5'000'000);
  EXPECT_EQ(told_, (Told{{0, 3}, {0, 3}, {0, 3}, {0, 0}}));
  EXPECT_FALSE(loop_.has_timers());
}

TEST_F(WaitingReportTest, CallsThatDoNotStartAreToldWhenTheyHaveWaited) {
  report_.watch_turns();
  EXPECT_FALSE(loop_.has_timers());
  unstarted_ = 2;
  report_.watch_turns();
  report_.watch_turns();
  loop_.advance(500'000);
  EXPECT_EQ(told_, (Told{{0, 2}}));
  unstarted_ = 0;
  loop_.advance(5'000'000);
  EXPECT_EQ(told_, (Told{{0, 2}, {0, 0}}));
  EXPECT_FALSE(loop_.has_timers());
}

TEST_F(WaitingReportTest, NothingIsRepeatedWithoutAConnection) {
  connected_ = false;
  held_back_ = 1;
  report_.calls_held_back();
  loop_.advance(5'000'000);
  EXPECT_FALSE(loop_.has_timers());
}

}  // namespace
}  // namespace rt::worker
