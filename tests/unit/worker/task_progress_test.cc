// How far an executing task is, and its reply.
#include "worker/service/task_progress.h"

#include <gtest/gtest.h>

#include "worker/service/task_reply.h"

namespace rt::worker {
namespace {

TEST(TaskProgressTest, ATaskThatWasTakenBackDoesNotStart) {
  TaskProgress task;
  EXPECT_TRUE(task.take_back());
  EXPECT_FALSE(task.start());
  EXPECT_TRUE(task.taken_back());
  EXPECT_FALSE(task.has_started());
}

TEST(TaskProgressTest, ATaskThatHasStartedIsNotTakenBack) {
  TaskProgress task;
  EXPECT_TRUE(task.start());
  EXPECT_FALSE(task.take_back());
  EXPECT_TRUE(task.has_started());
  // The binding may say so again.
  EXPECT_TRUE(task.start());
}

TEST(TaskProgressTest, AnInterruptIsTakenOnce) {
  TaskProgress task;
  EXPECT_FALSE(task.take_interrupt());
  task.interrupt();
  EXPECT_TRUE(task.take_interrupt());
  EXPECT_FALSE(task.take_interrupt());
}

TEST(TaskReplyTest, AnErrorIsTheOnlyValue) {
  TaskReply reply;
  EXPECT_FALSE(reply.begun());
  reply.begin(7, wire::TaskStatus::kError, 250, 1);
  reply.fail("broken");
  EXPECT_TRUE(reply.begun());
  EXPECT_TRUE(reply.failed());
  wire::Reader reader(as_bytes(reply.bytes()));
  EXPECT_EQ(reader.number<uint32_t>(), 7U);
  EXPECT_EQ(reader.number<wire::TaskStatus>(), wire::TaskStatus::kError);
  EXPECT_EQ(reader.number<uint32_t>(), 250U);
  EXPECT_EQ(reader.number<uint32_t>(), 1U);
  EXPECT_EQ(reader.number<uint8_t>(), 0);
  EXPECT_EQ(as_view(reader.take(reader.number<uint32_t>())), "broken");
  EXPECT_TRUE(reader.at_end() && reader.ok());
}

TEST(TaskReplyTest, TheLastReplyOfAWorkerKeepsItsStatus) {
  TaskReply reply;
  reply.begin(1, wire::TaskStatus::kErrorRetry, 0, 0);
  reply.mark_leaving();
  wire::Reader reader(as_bytes(reply.bytes()));
  reader.number<uint32_t>();
  const auto flags = reader.number<uint8_t>();
  EXPECT_TRUE(flags & wire::kLeaving);
  EXPECT_EQ(static_cast<wire::TaskStatus>(flags & ~wire::kLeaving), wire::TaskStatus::kErrorRetry);
}

TEST(TaskReplyTest, ALongTaskHasTheLongestDurationThatThereIs) {
  TaskReply reply;
  reply.begin(1, wire::TaskStatus::kOk, int64_t{1} << 40, 0);
  wire::Reader reader(as_bytes(reply.bytes()));
  reader.number<uint32_t>();
  reader.number<uint8_t>();
  EXPECT_EQ(reader.number<uint32_t>(), UINT32_MAX);
}

}  // namespace
}  // namespace rt::worker
