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

  bool has_work_ = false, is_needed_ = false;
  std::vector<std::string> done_;
  Departure departure_{noting("wake the reader"),
                       {.has_work = [this] { return has_work_; },
                        .is_needed = [this] { return is_needed_; },
                        .interrupt =
                            [this] {
                              done_.push_back("interrupt");
                              return true;
                            },
                        .refuse_calls = noting_why("refuse"),
                        .ask_to_end = noting_why("ask"),
                        .tell_leaving = noting("tell"),
                        .flush = noting("flush"),
                        .wake = noting("wake")}};
};

using Steps = std::vector<std::string>;

TEST_F(DepartureTest, AnIdleProcessLeavesAtOnce) {
  departure_.leave(true);
  EXPECT_EQ(done(), (Steps{"tell", "wake"}));
  EXPECT_TRUE(departure_.ends());
  EXPECT_EQ(departure_.exit_code(), 0);
  departure_.leave_if_idle();
  EXPECT_EQ(done(), Steps{});
}

TEST_F(DepartureTest, AGracefulEndWaitsForWorkAndForOthers) {
  departure_.leave_if_idle();
  EXPECT_FALSE(departure_.ends());
  has_work_ = is_needed_ = true;
  departure_.leave(true);
  EXPECT_FALSE(departure_.is_free_to_go());
  has_work_ = false;
  departure_.leave_if_idle();
  EXPECT_FALSE(departure_.ends());
  EXPECT_EQ(done(), Steps{});
  is_needed_ = false;
  EXPECT_TRUE(departure_.is_free_to_go());
  departure_.leave_if_idle();
  EXPECT_EQ(done(), (Steps{"tell", "wake"}));
  EXPECT_TRUE(departure_.ends());
  EXPECT_TRUE(departure_.is_graceful());
}

TEST_F(DepartureTest, AnEndAtOnceInterruptsWhatRuns) {
  has_work_ = is_needed_ = true;
  departure_.leave(false);
  EXPECT_EQ(done(), (Steps{"flush", "interrupt", "wake"}));
  EXPECT_TRUE(departure_.ends());
  EXPECT_FALSE(departure_.is_graceful());
}

TEST_F(DepartureTest, AnActorEndsOnce) {
  departure_.exit_actor("enough");
  departure_.exit_actor("too much");
  EXPECT_EQ(done(), (Steps{"refuse: enough", "ask: enough"}));
  EXPECT_EQ(departure_.left_because(), "enough");
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
