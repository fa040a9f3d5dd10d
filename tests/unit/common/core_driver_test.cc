// The driver of a core, with a loop whose time the test moves.
#include "common/net/core_driver.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace rt::net {
namespace {

class ManualLoop final : public Loop {
 public:
  int64_t now_us() const override { return now_us_; }
  TimerId run_after(int64_t delay_us, Task task) override {
    timers_[{now_us_ + delay_us, ++last_}] = std::move(task);
    return last_;
  }
  void cancel(TimerId id) override {
    std::erase_if(timers_, [&](const auto& timer) { return timer.first.second == id; });
  }
  void post(Task) override {}
  void connect(const Address&, int64_t,
               std::function<void(Result<std::unique_ptr<Stream>>)>) override {}
  Result<std::unique_ptr<Listener>> listen(const Address&, std::function<void(int)>) override {
    return make_error(Code::kUnsupported, "");
  }
  Result<std::unique_ptr<Listener>> listen_fd(int, std::function<void(int)>) override {
    return make_error(Code::kUnsupported, "");
  }
  std::unique_ptr<Stream> adopt(int) override { return nullptr; }
  std::unique_ptr<FdWatch> watch_readable(int, Task) override { return nullptr; }

  void run_to(int64_t us) {
    while (!timers_.empty() && timers_.begin()->first.first <= us) {
      auto timer = timers_.extract(timers_.begin());
      now_us_ = timer.key().first;
      timer.mapped()();
    }
    now_us_ = us;
  }
  size_t timers() const { return timers_.size(); }

 private:
  int64_t now_us_ = 0;
  TimerId last_ = 0;
  std::map<std::pair<int64_t, TimerId>, Task> timers_;
};

// Ticks at the times that the test gives it.
class Core {
 public:
  explicit Core(std::vector<int64_t>& ticks, const ManualLoop& loop) : ticks_(ticks), loop_(loop) {}
  void set_due(int64_t us) { due_us_ = us; }
  void tick(Now) {
    ticks_.push_back(loop_.now_us());
    due_us_ = after_us_ < 0 ? -1 : loop_.now_us() + after_us_;
  }
  int64_t next_tick_us() const { return due_us_; }
  void repeat_after(int64_t us) { after_us_ = us; }

 private:
  std::vector<int64_t>& ticks_;
  const ManualLoop& loop_;
  int64_t due_us_ = -1, after_us_ = -1;
};

class CoreDriverTest : public testing::Test {
 protected:
  void set_due(int64_t us) {
    driver.drive([us](Core& core, Now) { core.set_due(us); });
  }
  using Ticks = std::vector<int64_t>;
  ManualLoop loop;
  Ticks ticks;
  CoreDriver<Core> driver{loop, ticks, loop};
};

TEST_F(CoreDriverTest, TicksWhenTheCoreSaysAfterAnEvent) {
  loop.run_to(100);
  EXPECT_EQ(loop.timers(), 0u);
  set_due(150);
  loop.run_to(149);
  EXPECT_EQ(ticks, Ticks());
  loop.run_to(1000);
  EXPECT_EQ(ticks, Ticks{150});
  EXPECT_EQ(loop.timers(), 0u);
}

TEST_F(CoreDriverTest, ATickThatLeavesSomethingIsFollowedByTheNext) {
  driver.drive([](Core& core, Now) { core.repeat_after(20); });
  set_due(10);
  loop.run_to(55);
  EXPECT_EQ(ticks, (Ticks{10, 30, 50}));
}

TEST_F(CoreDriverTest, AnEarlierTimeMovesTheTickForwardAndALaterOneDoesNot) {
  set_due(100);
  set_due(200);
  set_due(50);
  EXPECT_EQ(loop.timers(), 1u);
  loop.run_to(60);
  EXPECT_EQ(ticks, Ticks{50});
}

TEST_F(CoreDriverTest, EventsReturnWhatTheyReturnAndTakeTheTimeOfTheClocks) {
  const Now before = system_now();
  const Now seen = driver.drive([](Core&, Now now) { return now; });
  EXPECT_GE(seen.steady_us, before.steady_us);
  EXPECT_LE(seen.steady_us, system_now().steady_us);
}

TEST_F(CoreDriverTest, OneThatIsStoppedPassesEventsOnAndTicksNoMore) {
  set_due(100);
  driver.stop();
  set_due(150);
  loop.run_to(1000);
  EXPECT_EQ(ticks, Ticks());
  EXPECT_EQ(driver.core().next_tick_us(), 150);
}

}  // namespace
}  // namespace rt::net
