#include "worker/service/departure.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rt::worker {
namespace {

class DepartureTest : public testing::Test {
 protected:
  // The steps that the departure has taken since the last call.
  std::vector<std::string> done() { return std::exchange(done_, {}); }
  std::function<void()> noting(std::string what) {
    return [this, what = std::move(what)] { done_.push_back(what); };
  }
  std::function<void(const std::string&)> noting_why(std::string what) {
    return [this, what = std::move(what)](const std::string& why) {
      done_.push_back(what + ": " + why);
    };
  }

  struct NoTasks final : LineSink {
    void fetch_arguments(const std::shared_ptr<LineTask>&) override {}
    void give_up_arguments(LineTask&) override {}
    void return_task(LineTask&) override {}
    void refuse_call(LineTask&) override {}
    void tell_blocked(bool) override {}
  };

  bool holds_replies_ = false, is_needed_ = false;
  std::vector<std::string> done_;
  NoTasks no_tasks_;
  TaskLine line_{no_tasks_};
  Departure departure_{noting("wake the reader"),
                       line_,
                       {.holds_replies = [this] { return holds_replies_; },
                        .is_needed = [this] { return is_needed_; },
                        .interrupt =
                            [this] {
                              done_.push_back("interrupt");
                              return true;
                            },
                        .refuse_with = noting_why("refuse"),
                        .ask_to_end = noting_why("ask"),
                        .tell_leaving = noting("tell"),
                        .flush = noting("flush"),
                        .wake = noting("wake")}};
};

using Steps = std::vector<std::string>;

TEST_F(DepartureTest, AProcessTellsItsNodeManagerThatItLeaves) {
  holds_replies_ = true;
  departure_.leaving().asked(true);
  holds_replies_ = false;
  is_needed_ = true;
  departure_.leaving().look();
  EXPECT_EQ(done(), Steps{});
  is_needed_ = false;
  departure_.leaving().look();
  EXPECT_EQ(done(), (Steps{"tell", "wake"}));
  EXPECT_TRUE(departure_.ends());
  EXPECT_EQ(departure_.exit_code(), 0);
}

TEST_F(DepartureTest, AnEndAtOnceInterruptsWhatRuns) {
  is_needed_ = true;
  departure_.leaving().asked(false);
  EXPECT_EQ(done(), (Steps{"flush", "interrupt", "wake"}));
  EXPECT_TRUE(departure_.ends());
  EXPECT_FALSE(departure_.leaving().is_graceful());
}

TEST_F(DepartureTest, AProcessWithoutANodeManagerEndsWithItsCode) {
  departure_.end(1);
  EXPECT_EQ(done(), Steps{"wake"});
  EXPECT_TRUE(departure_.ends());
  EXPECT_EQ(departure_.exit_code(), 1);
  departure_.leaving().asked(true);
  EXPECT_EQ(done(), Steps{});
}

TEST_F(DepartureTest, AnActorEndsOnce) {
  departure_.exit_actor("enough");
  departure_.exit_actor("too much");
  EXPECT_EQ(done(), (Steps{"refuse: enough", "ask: enough"}));
  EXPECT_TRUE(departure_.leaving().has_left());
  EXPECT_FALSE(departure_.ends());
}

TEST_F(DepartureTest, ASignalInterruptsOneWaitAndDecidesTheExitCode) {
  EXPECT_FALSE(departure_.take_signal());
  departure_.end_by_signal();
  EXPECT_EQ(done(), (Steps{"wake the reader"}));
  EXPECT_TRUE(departure_.take_signal());
  EXPECT_FALSE(departure_.take_signal());
  EXPECT_TRUE(departure_.ends());
  EXPECT_EQ(departure_.exit_code(), -SIGTERM);
}

}  // namespace
}  // namespace rt::worker
