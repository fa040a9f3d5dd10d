#include "worker/service/pump.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "tests/unit/worker/service_parts.h"

namespace rt::worker {
namespace {

// The calling thread executes a task whenever `task_` is set.
class PumpTest : public testing::Test {
 protected:
  PumpTest() { shared_.options.is_driver = false; }
  Pump::Hooks hooks() {
    return {.turned = [this] { ++turns_; },
            .current_task = [this] { return task_; },
            .take_signal = [this] { return std::exchange(signal_, false); },
            .set_blocked = [this](bool blocked) { blocked_.push_back(blocked); }};
  }
  // True from the moment on when the loop has run a timer of so many microseconds.
  std::function<bool()> after(int64_t us) {
    auto passed = std::make_shared<bool>(false);
    shared_.loop.run_after(us, [passed] { *passed = true; });
    return [passed] { return *passed; };
  }
  static bool never() { return false; }

  int turns_ = 0;
  TaskProgress* task_ = nullptr;
  bool signal_ = false;
  std::vector<bool> blocked_;
  test::ServiceParts parts_{{}, hooks(), {}};
  Shared& shared_ = parts_.shared;
  Pump& pump_ = parts_.pump;
  TaskProgress progress_;
};

TEST_F(PumpTest, WhoWaitsReadsUntilWhatItWaitsForIsThere) {
  WorkerLock lock(shared_.mutex);
  EXPECT_EQ(pump_.wait_until(lock, -1, [] { return true; }), Waited::kDone);
  EXPECT_EQ(turns_, 0);
  EXPECT_EQ(pump_.wait_until(lock, -1, after(1000)), Waited::kDone);
  EXPECT_GE(turns_, 1);
  EXPECT_TRUE(lock.owns_lock());
}

TEST_F(PumpTest, ADeadlineThatHasPassedMeansToLook) {
  WorkerLock lock(shared_.mutex);
  const int64_t now_us = steady_now_us();
  EXPECT_EQ(pump_.wait_until(lock, now_us, never), Waited::kTimeout);
  EXPECT_EQ(turns_, 0);
  EXPECT_EQ(pump_.wait_until(lock, now_us, [] { return true; }), Waited::kDone);
  EXPECT_EQ(pump_.wait_until(lock, now_us + 2000, never), Waited::kTimeout);
  EXPECT_GE(steady_now_us(), now_us + 2000);
}

TEST_F(PumpTest, OneThreadReadsForAllThatWait) {
  constexpr int kThreads = 4;
  std::atomic<int> done{0};
  std::function<bool()> passed;
  {
    WorkerLock lock(shared_.mutex);
    passed = after(20'000);
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      WorkerLock lock(shared_.mutex);
      while (pump_.wait_until(lock, -1, passed) == Waited::kInterrupted) {}
      ++done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads);
}

TEST_F(PumpTest, ADroppedReferenceIsTakenUpBeforeTheFirstLook) {
  WorkerLock lock(shared_.mutex);
  RefTable& refs = parts_.objects.refs();
  Ref ref(refs.create(ObjectId::random(parts_.rng)));
  ref.reset();
  ASSERT_EQ(refs.owned(), 1U);
  EXPECT_EQ(pump_.wait_until(lock, -1, [&] { return refs.owned() == 0; }), Waited::kDone);
  EXPECT_EQ(turns_, 0);
}

TEST_F(PumpTest, ATaskThatWaitsLongLendsItsCpuWhereOthersMayHaveToRunFirst) {
  shared_.options.settings.blocked_report_after_us = 0;
  task_ = &progress_;
  WorkerLock lock(shared_.mutex);
  EXPECT_EQ(pump_.wait_until(lock, -1, after(1000)), Waited::kDone);
  EXPECT_EQ(pump_.wait_until(lock, -1, after(1000), never), Waited::kDone);
  EXPECT_TRUE(blocked_.empty());
  EXPECT_EQ(pump_.wait_until(lock, -1, after(1000), kLendsCpu), Waited::kDone);
  EXPECT_EQ(blocked_, (std::vector<bool>{true, false}));
}

TEST_F(PumpTest, NobodyElseLendsACpu) {
  shared_.options.settings.blocked_report_after_us = 0;
  WorkerLock lock(shared_.mutex);
  EXPECT_EQ(pump_.wait_until(lock, -1, after(1000), kLendsCpu), Waited::kDone);
  task_ = &progress_;
  shared_.options.settings.blocked_report_after_us = 1'000'000;
  EXPECT_EQ(pump_.wait_until(lock, -1, after(1000), kLendsCpu), Waited::kDone);
  shared_.options.settings.blocked_report_after_us = 0;
  shared_.options.is_driver = true;
  EXPECT_EQ(pump_.wait_until(lock, -1, after(1000), kLendsCpu), Waited::kDone);
  EXPECT_TRUE(blocked_.empty());
}

TEST_F(PumpTest, ATaskIsInterruptedOncePerInterruptAndSignal) {
  task_ = &progress_;
  WorkerLock lock(shared_.mutex);
  const int64_t now_us = steady_now_us();
  progress_.interrupt();
  EXPECT_EQ(pump_.wait_until(lock, now_us, never), Waited::kInterrupted);
  EXPECT_EQ(pump_.wait_until(lock, now_us, never), Waited::kTimeout);
  signal_ = true;
  EXPECT_EQ(pump_.wait_until(lock, now_us, never), Waited::kInterrupted);
  EXPECT_EQ(pump_.wait_until(lock, now_us, never), Waited::kTimeout);
  // A thread without a task takes no signal away from it.
  task_ = nullptr;
  signal_ = true;
  EXPECT_EQ(pump_.wait_until(lock, now_us, never), Waited::kTimeout);
  EXPECT_TRUE(signal_);
}

TEST_F(PumpTest, ADriverReturnsToItsLanguageFromTimeToTime) {
  shared_.options.is_driver = true;
  WorkerLock lock(shared_.mutex);
  EXPECT_EQ(pump_.wait_until(lock, -1, never), Waited::kInterrupted);
}

TEST_F(PumpTest, AWaitForAnAnswerEndsWhenTheLanguageSaysSoOrTheSessionIsOver) {
  shared_.options.is_driver = true;
  int asked = 0;
  shared_.options.interrupted = [&] {
    EXPECT_TRUE(shared_.mutex.try_lock());
    shared_.mutex.unlock();
    return ++asked == 2;
  };
  WorkerLock lock(shared_.mutex);
  EXPECT_TRUE(pump_.await_answer(lock, after(1000)));
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(pump_.await_answer(lock, never).error().code, Code::kCancelled);
  EXPECT_EQ(asked, 2);
  shared_.stopping = true;
  EXPECT_EQ(pump_.await_answer(lock, never).error().code, Code::kUnavailable);
}

TEST_F(PumpTest, AThreadOfItsOwnReadsAndDeliversWhileNobodyWaits) {
  std::promise<void> read, delivered;
  shared_.options.is_driver = true;
  shared_.options.log_sink = [&](const std::vector<DriverLine>&) { delivered.set_value(); };
  {
    WorkerLock lock(shared_.mutex);
    ASSERT_TRUE(pump_.start());
    shared_.loop.run_after(0, [&] { read.set_value(); });
  }
  read.get_future().wait();
  {
    WorkerLock lock(shared_.mutex);
    parts_.notices.tell("a line");
  }
  delivered.get_future().wait();
  {
    WorkerLock lock(shared_.mutex);
    shared_.stopping = true;
    pump_.stop();
  }
  pump_.join();
}

}  // namespace
}  // namespace rt::worker
