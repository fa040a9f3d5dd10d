#include "worker/service/notices.h"

#include <gtest/gtest.h>

#include "common/config/settings.h"
#include "common/rpc/build.h"

namespace rt::worker {
namespace {

class NoticesTest : public testing::Test {
 protected:
  // Delivers what has been collected.
  std::vector<DriverLine> take() {
    shown_.clear();
    WorkerLock lock(mutex_);
    notices_.deliver(lock);
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_TRUE(notices_.empty());
    return shown_;
  }

  WorkerMutex mutex_;
  std::vector<DriverLine> shown_;
  int wakes_ = 0;
  Context context_ = [] {
    Context context;
    context.node_ip = "10.0.0.1";
    return context;
  }();
  Options options_ = [this] {
    Options options;
    options.is_driver = true;
    options.log_sink = [this](const std::vector<DriverLine>& lines) {
      EXPECT_TRUE(mutex_.try_lock());
      mutex_.unlock();
      shown_ = lines;
    };
    return options;
  }();
  Notices notices_{options_, context_, [this] { ++wakes_; }};
};

TEST_F(NoticesTest, LinesAreHandedOverOnceWithoutTheLock) {
  notices_.tell("a notice");
  notices_.warn("a warning");
  EXPECT_EQ(wakes_, 2);
  const std::vector<DriverLine> lines = take();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].text, "a notice");
  EXPECT_FALSE(lines[0].is_stderr);
  EXPECT_EQ(lines[1].text, "a warning");
  EXPECT_TRUE(lines[1].is_stderr);
  EXPECT_TRUE(take().empty());
}

TEST_F(NoticesTest, FailedAttemptsOfOneMomentAreSummedUp) {
  for (int i = 0; i < 1000; ++i) notices_.attempt_failed([] { return "failed"; });
  const std::vector<DriverLine> lines = take();
  ASSERT_EQ(lines.size(), 11U);
  EXPECT_EQ(lines[9].text, "failed");
  EXPECT_TRUE(lines[10].text.starts_with("More tasks failed"));
}

TEST_F(NoticesTest, NothingIsSaidOfAttemptsAfterTheEndOfTheSession) {
  notices_.close();
  notices_.attempt_failed([] { return "failed"; });
  EXPECT_TRUE(notices_.empty());
}

TEST_F(NoticesTest, LinesOfThisNodeHaveNoAddress) {
  proto::HeadEvent event;
  for (const char* ip : {"10.0.0.1", "10.0.0.2"}) {
    auto* batch = event.add_logs();
    batch->set_name("f");
    batch->set_ip(ip);
    batch->add_lines("hello");
  }
  notices_.add(event);
  const std::vector<DriverLine> lines = take();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].ip, "");
  EXPECT_EQ(lines[1].ip, "10.0.0.2");
}

TEST_F(NoticesTest, OwnBuildIsNoDifference) {
  notices_.met_build(rpc::my_build());
  EXPECT_TRUE(notices_.empty());
}

TEST_F(NoticesTest, WorkersShowNothingOfTheHead) {
  options_.is_driver = false;
  proto::HeadEvent event;
  event.add_notices()->set_text("a node hangs");
  notices_.add(event);
  EXPECT_TRUE(notices_.empty());
}

}  // namespace
}  // namespace rt::worker
