// The owner's half of scheduling, against a recording SubmitSink: pipelining, retries and
// cancellation.
#include <set>

#include "submitter_fixture.h"

namespace rt::worker {
namespace {

TEST_F(SubmitterTest, ATaskWithANodePreferenceOfItsOwnHasItsOwnLeases) {
  submit();
  proto::TaskTemplate there = function.spec;
  there.mutable_constraint()->set_node_id(NodeId::nil().binary());
  SchedulingClass* near = submitter.scheduling_class(there);
  ASSERT_NE(near, function.scheduling_class);
  Task* task = tasks.take();
  task->id = make_task_id(++next_id, job_id_from_int(1));
  task->function = &function;
  task->own_class = near;
  submitter.submit(task);
  submitter.check_invariants();
  ASSERT_EQ(sink.demands.size(), 2u);
  EXPECT_EQ(sink.demands[1].class_id, near->id);
  EXPECT_EQ(near->queue.size(), 1u);
  const Submitter::Cancelled cancelled = submitter.cancel(task);
  EXPECT_TRUE(cancelled.submitted);
  EXPECT_EQ(cancelled.lease, nullptr);
  EXPECT_TRUE(near->queue.empty());
}

TEST_F(SubmitterTest, ATaskThatFoundNoRoomAsksForALeaseWhereItMayFindSome) {
  Task* task = submit(/*retries=*/0);
  uint64_t key = grant(1);
  ASSERT_EQ(sink.pushed.size(), 1u);
  sink.clear();
  proto::TaskTemplate there = function.spec;
  there.mutable_constraint()->set_node_id(NodeId::nil().binary());
  SchedulingClass* beside = submitter.scheduling_class(there);
  task->own_class = beside;
  submitter.retry(key, task, Submitter::Cost::kNothing, now);
  submitter.check_invariants();
  EXPECT_TRUE(sink.pushed.empty());
  EXPECT_EQ(beside->queue.size(), 1u);
  ASSERT_EQ(sink.demands.size(), 1u);
  EXPECT_EQ(sink.demands[0].class_id, beside->id);
  EXPECT_EQ(task->attempt, 1);
  EXPECT_EQ(task->retries_left, 0);
  EXPECT_TRUE(function.scheduling_class->queue.empty());
}

TEST_F(SubmitterTest, ACancelledTaskInTheQueueFailsAndTheOthersGoOn) {
  Task* first = submit();
  Task* second = submit();
  const Submitter::Cancelled cancelled = submitter.cancel(first);
  EXPECT_TRUE(cancelled.submitted);
  EXPECT_EQ(cancelled.lease, nullptr);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, first);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kCancelled));
  uint64_t key = grant(1);
  ASSERT_EQ(sink.pushed.size(), 1u);
  EXPECT_EQ(sink.pushed[0].second, second);
  finish(key, second, 10);
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, ACancelledTaskInFlightIsItsWorkersAndComesBackAsCancelled) {
  Task* task = submit();
  uint64_t key = grant(1);
  const Lease* lease = submitter.cancel(task).lease;
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->key, key);
  EXPECT_TRUE(sink.failed.empty());
  submitter.task_returned(key, task, now);  // The worker had not started it.
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kCancelled));
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, ACancelledTaskIsNotRetriedWhenItsWorkerDies) {
  Task* task = submit(-1);
  uint64_t key = grant(1);
  sink.clear();
  submitter.lease_broken(key);
  // The cause of the worker's death is still unknown.
  const Submitter::Cancelled cancelled = submitter.cancel(task);
  EXPECT_TRUE(cancelled.submitted);
  EXPECT_EQ(cancelled.lease, nullptr);
  submitter.worker_exit(key, {});
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, task);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kCancelled));
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, ATaskThatWasNotSubmittedYetStaysItsCallers) {
  Task waiting;
  waiting.function = &function;
  EXPECT_FALSE(submitter.cancel(&waiting).submitted);
  EXPECT_TRUE(sink.empty());
}

TEST_F(SubmitterTest, ClosedFailsWhatIsQueuedInFlightAndSubmittedLater) {
  Task* running = submit();
  Task* queued = submit();
  uint64_t key = grant(1);
  sink.clear();
  submitter.close(make_error(Code::kLocalNodeDied, "the node is gone"));
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, queued);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kLocalNodeDied));
  submitter.lease_broken(key);
  submitter.worker_exit(key, {});
  ASSERT_EQ(sink.failed.size(), 2u);
  EXPECT_EQ(sink.failed[1].first, running);
  submit();
  EXPECT_EQ(sink.failed.size(), 3u);
  EXPECT_EQ(submitter.pending(), 0);
  EXPECT_TRUE(sink.demands.empty());
}

TEST_F(SubmitterTest, UnknownDurationIsNotPipelined) {
  std::vector<Task*> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(submit());
  sink.clear();
  uint64_t key = grant(1);
  EXPECT_EQ(sink.pushed.size(), 1u);
  sink.clear();
  finish(key, tasks[0], 5);
  // The duration is known after the first task, so the rest is pushed at once.
  EXPECT_EQ(sink.pushed.size(), 2u);
  finish(key, tasks[1], 5);
  finish(key, tasks[2], 5);
}

TEST_F(SubmitterTest, LongTasksGetOneWorkerEach) {
  function.average_us = 1'000'000;
  std::vector<Task*> tasks;
  for (int i = 0; i < 64; ++i) tasks.push_back(submit());
  EXPECT_GE(sink.demands.back().want, 60);
  sink.clear();
  uint64_t a = grant(1), b = grant(2);
  std::set<uint64_t> used;
  for (auto& [key, task] : sink.pushed) used.insert(key);
  EXPECT_EQ(sink.pushed.size(), 2u);
  EXPECT_EQ(used, (std::set<uint64_t>{a, b}));
}

TEST_F(SubmitterTest, ATaskThatSpreadsAndComesAloneAsksForALeaseOfItsOwn) {
  function.spec.set_strategy(proto::SPREAD);
  function.scheduling_class = submitter.scheduling_class(function.spec);
  for (uint64_t lease : {7, 8}) {
    Task* task = submit();
    ASSERT_EQ(sink.demands.size(), 1u);
    EXPECT_EQ(sink.demands[0].want, 1);
    uint64_t key = grant(lease);
    sink.clear();
    finish(key, task, 5);
    EXPECT_EQ(sink.returned, std::vector<uint64_t>{lease});
    sink.clear();
  }
  // While others wait, the lease takes the next one.
  Task* first = submit();
  submit();
  uint64_t key = grant(9);
  sink.clear();
  finish(key, first, 5);
  EXPECT_TRUE(sink.returned.empty());
}

TEST_F(SubmitterTest, WorkerDeathRetriesTheFirstAndIsolatesTheRest) {
  function.average_us = 10;
  std::vector<Task*> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(submit());
  uint64_t key = grant(1);
  ASSERT_EQ(sink.pushed.size(), 3u);
  sink.clear();
  submitter.lease_broken(key);
  EXPECT_EQ(sink.exits_asked, std::vector<uint64_t>{key});
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::SIGNALED);
  info.set_signal(9);
  submitter.worker_exit(key, info);
  submitter.check_invariants();
  EXPECT_EQ(tasks[0]->retries_left, 2);
  ASSERT_EQ(sink.attempts_failed.size(), 1u);  // The other tasks had not started.
  EXPECT_EQ(sink.attempts_failed[0].first, 0);
  EXPECT_EQ(tasks[1]->retries_left, 3);
  EXPECT_TRUE(sink.failed.empty());
  sink.clear();
  uint64_t next = grant(2);
  EXPECT_EQ(sink.pushed.size(), 1u);  // Suspects are pushed one at a time.
  finish(next, sink.pushed[0].second, 10);
}

TEST_F(SubmitterTest, WithoutRetriesAWorkerDeathIsAnErrorThatNamesTheSignal) {
  Task* task = submit(0);
  uint64_t key = grant(1);
  submitter.lease_broken(key);
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::SIGNALED);
  info.set_signal(11);
  info.set_pid(42);
  submitter.worker_exit(key, info);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, task);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kWorkerCrashed));
  EXPECT_NE(sink.failed[0].second.message().find("signal 11"), std::string::npos);
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, NodeDeathHasItsOwnErrorCode) {
  submit(0);
  uint64_t key = grant(1);
  submitter.lease_broken(key);
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::NODE_DIED);
  submitter.worker_exit(key, info);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kNodeDied));
}

TEST_F(SubmitterTest, UnretriableTasksAreNeverPipelined) {
  function.average_us = 1;
  Task* a = submit(0);
  Task* b = submit(0);
  uint64_t key = grant(1);
  ASSERT_EQ(sink.pushed.size(), 1u);
  finish(key, a, 1);
  ASSERT_EQ(sink.pushed.size(), 2u);
  finish(key, b, 1);
}

TEST_F(SubmitterTest, WhatWaitsBehindATaskThatRunsLongerThanMeasuredComesBack) {
  function.average_us = 1;
  Task* slow = submit();
  Task* second = submit();
  Task* third = submit();
  uint64_t a = grant(1);
  ASSERT_EQ(sink.pushed.size(), 3u);
  EXPECT_GE(sink.demands.back().want, 1);  // Another worker remains wanted.
  sink.clear();
  submitter.tick(now);
  EXPECT_TRUE(sink.taken_back.empty());
  pass(settings.pipeline_target_us);
  submitter.tick(now);
  EXPECT_TRUE(sink.taken_back.empty());  // One pipeline_target_us is not long enough.
  pass(3 * settings.pipeline_target_us);
  submitter.tick(now);
  EXPECT_GT(submitter.next_tick_us(), now.steady_us);
  EXPECT_EQ(sink.taken_back, (std::vector<std::pair<uint64_t, int>>{{a, 2}}));
  pass(settings.pipeline_target_us);
  submitter.tick(now);
  EXPECT_EQ(sink.taken_back.size(), 1u);  // The same tasks are not taken back twice.
  submitter.task_returned(a, third, now);
  submitter.task_returned(a, second, now);
  submitter.check_invariants();
  Task* fourth = submit();
  EXPECT_TRUE(sink.pushed.empty());
  ASSERT_FALSE(sink.demands.empty());
  // The average was wrong, so more workers are wanted than follow from it.
  EXPECT_EQ(sink.demands.back().want, 2);
  uint64_t b = grant(2);
  EXPECT_EQ(sink.pushed,
            (std::vector<std::pair<uint64_t, Task*>>{{b, second}, {b, third}, {b, fourth}}));
  finish(a, slow, 50'000);
  for (Task* task : {second, third, fourth}) finish(b, task, 1);
}

TEST_F(SubmitterTest, ALeaseThatMakesProgressKeepsWhatItHas) {
  function.average_us = 1;
  std::vector<Task*> tasks;
  for (int i = 0; i < 5; ++i) tasks.push_back(submit());
  uint64_t key = grant(1);
  for (Task* task : tasks) {
    submitter.tick(now);
    pass(4 * settings.pipeline_target_us);
    finish(key, task, 1);
  }
  EXPECT_TRUE(sink.taken_back.empty());
}

TEST_F(SubmitterTest, TasksThatWereLostBehindAnotherOneAreSentOneByOne) {
  function.average_us = 1;
  Task* blamed = submit();
  Task* second = submit();
  Task* third = submit();
  uint64_t first_key = grant(1);
  ASSERT_EQ(sink.pushed.size(), 3u);
  uint64_t key = grant(2);
  Task* other = submit();
  ASSERT_EQ(sink.pushed.back(), std::pair(key, other));
  sink.clear();
  submitter.lease_broken(first_key);
  EXPECT_TRUE(sink.pushed.empty()) << "behind another one again";
  finish(key, other, 1);
  EXPECT_EQ(sink.pushed, (std::vector<std::pair<uint64_t, Task*>>{{key, second}}));
  Task* unsuspected = submit();
  EXPECT_EQ(sink.pushed.size(), 1u) << "behind a task that may have ended the last worker";
  finish(key, second, 1);
  EXPECT_EQ(sink.pushed.back().second, third);
  finish(key, third, 1);
  EXPECT_EQ(sink.pushed.back().second, unsuspected);
  finish(key, unsuspected, 1);
  proto::ExitInfo death;
  submitter.worker_exit(first_key, death);
  EXPECT_EQ(sink.pushed.back().second, blamed);
  finish(key, blamed, 1);
}

TEST_F(SubmitterTest, AUserExceptionWithRetriesRunsAgain) {
  Task* task = submit(1);
  uint64_t key = grant(1);
  sink.clear();
  submitter.retry(key, task, Submitter::Cost::kRetry, now);
  submitter.check_invariants();
  ASSERT_EQ(sink.pushed.size(), 1u);
  EXPECT_EQ(task->retries_left, 0);
  EXPECT_EQ(task->attempt, 1);
  finish(key, task, 5);
}

TEST_F(SubmitterTest, AReplyForNothingIsRecognised) {
  uint64_t key = 0;
  Task* task = submit();
  key = grant(1);
  EXPECT_EQ(submitter.reply_of(key, task->seq + 17), nullptr);
  EXPECT_EQ(submitter.reply_of(key + 99, 1), nullptr);
  finish(key, task, 1);
}

TEST_F(SubmitterTest, FatalNoticeFailsTheQueue) {
  submit();
  submit();
  submitter.class_failed(
      function.scheduling_class->id,
      make_error(Code::kRuntimeEnvSetup, "no worker can be started: exec: no such file"));
  ASSERT_EQ(sink.failed.size(), 2u);
  EXPECT_NE(sink.failed[0].second.message().find("no such file"), std::string::npos);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kRuntimeEnvSetup));
  EXPECT_EQ(submitter.pending(), 0);
}

}  // namespace
}  // namespace rt::worker
