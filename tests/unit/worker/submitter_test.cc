// The owner's half of scheduling, against a recording SubmitComm: demands, leases, pipelining,
// retries and cancellation.
#include "worker/core/submitter.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/rng.h"

namespace rt::worker {
namespace {

struct Recorder : SubmitComm {
  struct Demand {
    NodeKey node;
    uint64_t class_id;
    int want;
    uint64_t last_answer;
  };
  std::vector<Demand> demands;
  std::vector<uint64_t> connecting, returned, exits_asked;
  std::vector<std::pair<uint64_t, int>> taken_back;
  std::vector<std::pair<uint64_t, Task*>> pushed;
  std::vector<std::pair<Task*, proto::ErrorValue>> failed;
  std::vector<std::pair<int, proto::ErrorValue>> attempts_failed;

  void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t,
                   const std::string&, uint64_t last_answer) override {
    demands.push_back({node, c.id, want, last_answer});
  }
  void connect_lease(Lease& lease) override { connecting.push_back(lease.key); }
  void push_task(Lease& lease, Task& task) override { pushed.push_back({lease.key, &task}); }
  void take_back(Lease& lease, int count) override { taken_back.push_back({lease.key, count}); }
  void return_lease(Lease& lease, bool) override { returned.push_back(lease.id); }
  void ask_exit(Lease& lease) override { exits_asked.push_back(lease.key); }
  void fail_task(Task* task, const proto::ErrorValue& error) override {
    failed.push_back({task, error});
  }
  void attempt_failed(const Task& task, const proto::ErrorValue& error) override {
    attempts_failed.push_back({task.attempt, error});
  }
  bool empty() const {
    return demands.empty() && connecting.empty() && returned.empty() && exits_asked.empty() &&
           taken_back.empty() && pushed.empty() && failed.empty();
  }
  void clear() { *this = Recorder(); }
};

class SubmitterTest : public ::testing::Test {
 protected:
  SubmitterTest() {
    function.spec.set_name("f");
    (*function.spec.mutable_resources()->mutable_units())["CPU"] = 10000;
    function.scheduling_class = submitter.scheduling_class(function.spec);
  }
  ~SubmitterTest() override {
    submitter.check_invariants();
    for (auto& [task, error] : comm.failed) delete task;
  }
  Task* submit(int retries = 3) {
    auto* task = new Task;
    task->id = make_task_id(++next_id, job_id_from_int(1));
    task->function = &function;
    task->retries_left = retries;
    submitter.submit(task);
    submitter.check_invariants();
    return task;
  }
  uint64_t grant(uint64_t lease_id) {
    proto::WorkerAddress worker;
    submitter.lease_granted(NodeKey::nil(), function.scheduling_class->id, lease_id, worker, 1,
                            now);
    EXPECT_EQ(comm.connecting.size(), 1u);
    uint64_t key = comm.connecting.empty() ? 0 : comm.connecting.back();
    comm.connecting.clear();
    submitter.lease_ready(key, now);
    submitter.check_invariants();
    return key;
  }
  void finish(uint64_t key, Task* task, int64_t duration) {
    ASSERT_EQ(submitter.reply_of(key, task->seq), task);
    submitter.finished(key, task, duration, now);
    delete task;
    submitter.check_invariants();
  }

  Settings settings;
  Recorder comm;
  Submitter submitter{comm, settings};
  Template function;
  int64_t now = 1'000'000;
  uint64_t next_id = 0;
};

TEST_F(SubmitterTest, FirstTaskAsksForOneLeaseAndIsPushedWhenGranted) {
  Task* task = submit();
  ASSERT_EQ(comm.demands.size(), 1u);
  EXPECT_EQ(comm.demands[0].want, 1);
  EXPECT_TRUE(comm.demands[0].node.is_nil());
  comm.clear();
  uint64_t key = grant(7);
  ASSERT_EQ(comm.pushed.size(), 1u);
  EXPECT_EQ(comm.pushed[0].second, task);
  comm.clear();
  finish(key, task, 10);
  EXPECT_TRUE(comm.empty());
}

TEST_F(SubmitterTest, ATaskWithANodePreferenceOfItsOwnHasItsOwnLeases) {
  submit();
  proto::TaskTemplate there = function.spec;
  there.mutable_constraint()->set_node_id(NodeId::nil().binary());
  SchedulingClass* near = submitter.scheduling_class(there);
  ASSERT_NE(near, function.scheduling_class);
  Task* task = new Task;
  task->id = make_task_id(++next_id, job_id_from_int(1));
  task->function = &function;
  task->own_class = near;
  submitter.submit(task);
  submitter.check_invariants();
  ASSERT_EQ(comm.demands.size(), 2u);
  EXPECT_EQ(comm.demands[1].class_id, near->id);
  EXPECT_EQ(near->queue.size(), 1u);
  bool unknown = true;
  EXPECT_EQ(submitter.cancel(task, &unknown), nullptr);
  EXPECT_FALSE(unknown);
  EXPECT_TRUE(near->queue.empty());
}

TEST_F(SubmitterTest, ATaskThatFoundNoRoomAsksForALeaseWhereItMayFindSome) {
  Task* task = submit(/*retries=*/0);
  uint64_t key = grant(1);
  ASSERT_EQ(comm.pushed.size(), 1u);
  comm.clear();
  proto::TaskTemplate there = function.spec;
  there.mutable_constraint()->set_node_id(NodeId::nil().binary());
  SchedulingClass* beside = submitter.scheduling_class(there);
  task->own_class = beside;
  submitter.retry(key, task, Submitter::Cost::kNothing, now);
  submitter.check_invariants();
  EXPECT_TRUE(comm.pushed.empty());
  EXPECT_EQ(beside->queue.size(), 1u);
  ASSERT_EQ(comm.demands.size(), 1u);
  EXPECT_EQ(comm.demands[0].class_id, beside->id);
  EXPECT_EQ(task->attempt, 1);
  EXPECT_EQ(task->retries_left, 0);
  EXPECT_TRUE(function.scheduling_class->queue.empty());
}

TEST_F(SubmitterTest, ACancelledTaskInTheQueueFailsAndTheOthersGoOn) {
  Task* first = submit();
  Task* second = submit();
  bool unknown = true;
  EXPECT_EQ(submitter.cancel(first, &unknown), nullptr);
  EXPECT_FALSE(unknown);
  ASSERT_EQ(comm.failed.size(), 1u);
  EXPECT_EQ(comm.failed[0].first, first);
  EXPECT_EQ(comm.failed[0].second.code(), static_cast<int>(Code::kCancelled));
  uint64_t key = grant(1);
  ASSERT_EQ(comm.pushed.size(), 1u);
  EXPECT_EQ(comm.pushed[0].second, second);
  finish(key, second, 10);
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, ACancelledTaskInFlightIsItsWorkersAndComesBackAsCancelled) {
  Task* task = submit();
  uint64_t key = grant(1);
  bool unknown = true;
  Lease* lease = submitter.cancel(task, &unknown);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->key, key);
  EXPECT_TRUE(comm.failed.empty());
  submitter.task_returned(key, task, now);  // The worker had not started it.
  ASSERT_EQ(comm.failed.size(), 1u);
  EXPECT_EQ(comm.failed[0].second.code(), static_cast<int>(Code::kCancelled));
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, ACancelledTaskIsNotRetriedWhenItsWorkerDies) {
  Task* task = submit(-1);
  uint64_t key = grant(1);
  comm.clear();
  submitter.lease_broken(key);
  bool unknown = true;
  // The cause of the worker's death is still unknown.
  EXPECT_EQ(submitter.cancel(task, &unknown), nullptr);
  EXPECT_FALSE(unknown);
  submitter.worker_exit(key, {});
  ASSERT_EQ(comm.failed.size(), 1u);
  EXPECT_EQ(comm.failed[0].first, task);
  EXPECT_EQ(comm.failed[0].second.code(), static_cast<int>(Code::kCancelled));
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, AWorkerThatLeavesGetsNothingMoreAndItsLeaseEnds) {
  function.alone = true;
  Task* first = submit();
  function.average_us = 1;  // So short that further tasks would be pipelined behind it.
  Task* second = submit();
  uint64_t key = grant(1);
  ASSERT_EQ(comm.pushed.size(), 1u);
  submitter.worker_leaves(key);
  finish(key, first, 1);
  EXPECT_EQ(comm.pushed.size(), 1u);
  EXPECT_EQ(comm.returned, std::vector<uint64_t>{1});
  key = grant(2);
  ASSERT_EQ(comm.pushed.size(), 2u);
  EXPECT_EQ(comm.pushed[1].second, second);
  submitter.worker_leaves(key);
  submitter.retry(key, second, Submitter::Cost::kRetry,
                  now);  // The task raised and has retries left, for another worker.
  EXPECT_EQ(comm.returned, (std::vector<uint64_t>{1, 2}));
  key = grant(3);
  finish(key, second, 1);
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, ATaskThatWasNotSubmittedYetStaysItsCallers) {
  Task waiting;
  waiting.function = &function;
  bool unknown = false;
  EXPECT_EQ(submitter.cancel(&waiting, &unknown), nullptr);
  EXPECT_TRUE(unknown);
  EXPECT_TRUE(comm.empty());
}

TEST_F(SubmitterTest, ClosedFailsWhatIsQueuedInFlightAndSubmittedLater) {
  Task* running = submit();
  Task* queued = submit();
  uint64_t key = grant(1);
  comm.clear();
  submitter.close(make_error(Code::kLocalNodeDied, "the node is gone"));
  ASSERT_EQ(comm.failed.size(), 1u);
  EXPECT_EQ(comm.failed[0].first, queued);
  EXPECT_EQ(comm.failed[0].second.code(), static_cast<int>(Code::kLocalNodeDied));
  submitter.lease_broken(key);
  submitter.worker_exit(key, {});
  ASSERT_EQ(comm.failed.size(), 2u);
  EXPECT_EQ(comm.failed[1].first, running);
  submit();
  EXPECT_EQ(comm.failed.size(), 3u);
  EXPECT_EQ(submitter.pending(), 0);
  EXPECT_TRUE(comm.demands.empty());
}

TEST_F(SubmitterTest, DemandSentToANodeThatBringsNothingComesBackEvenWithoutLeases) {
  Task* task = submit();
  Rng rng(1);
  NodeKey other = NodeId::random(rng);
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, other, 1, 101, now);
  EXPECT_TRUE(submitter.needs_tick());
  comm.clear();
  submitter.tick(now + 3'000'000);
  ASSERT_FALSE(comm.demands.empty());
  EXPECT_TRUE(comm.demands.back().node.is_nil());
  EXPECT_EQ(comm.demands.back().want, 1);
  uint64_t key = grant(1);
  finish(key, task, 5);
}

TEST_F(SubmitterTest, UnknownDurationIsNotPipelined) {
  std::vector<Task*> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(submit());
  comm.clear();
  uint64_t key = grant(1);
  EXPECT_EQ(comm.pushed.size(), 1u);
  comm.clear();
  finish(key, tasks[0], 5);
  // The duration is known after the first task, so the rest is pushed at once.
  EXPECT_EQ(comm.pushed.size(), 2u);
  finish(key, tasks[1], 5);
  finish(key, tasks[2], 5);
}

TEST_F(SubmitterTest, LongTasksGetOneWorkerEach) {
  function.average_us = 1'000'000;
  std::vector<Task*> tasks;
  for (int i = 0; i < 64; ++i) tasks.push_back(submit());
  EXPECT_GE(comm.demands.back().want, 60);
  comm.clear();
  uint64_t a = grant(1), b = grant(2);
  std::set<uint64_t> used;
  for (auto& [key, task] : comm.pushed) used.insert(key);
  EXPECT_EQ(comm.pushed.size(), 2u);
  EXPECT_EQ(used, (std::set<uint64_t>{a, b}));
}

TEST_F(SubmitterTest, IdleLeaseIsReturnedAfterTheTimeout) {
  Task* task = submit();
  uint64_t key = grant(9);
  finish(key, task, 5);
  comm.clear();
  int64_t next = submitter.tick(now);
  EXPECT_EQ(next, now + settings.lease_idle_timeout_ms * 1000);
  EXPECT_TRUE(comm.empty());
  now = next;
  submitter.tick(now);
  EXPECT_EQ(comm.returned, std::vector<uint64_t>{9});
}

TEST_F(SubmitterTest, ATaskThatSpreadsAndComesAloneAsksForALeaseOfItsOwn) {
  function.spec.set_strategy(proto::SPREAD);
  function.scheduling_class = submitter.scheduling_class(function.spec);
  for (uint64_t lease : {7, 8}) {
    Task* task = submit();
    ASSERT_EQ(comm.demands.size(), 1u);
    EXPECT_EQ(comm.demands[0].want, 1);
    uint64_t key = grant(lease);
    comm.clear();
    finish(key, task, 5);
    EXPECT_EQ(comm.returned, std::vector<uint64_t>{lease});
    comm.clear();
  }
  // While others wait, the lease takes the next one.
  Task* first = submit();
  submit();
  uint64_t key = grant(9);
  comm.clear();
  finish(key, first, 5);
  EXPECT_TRUE(comm.returned.empty());
}

TEST_F(SubmitterTest, WorkerDeathRetriesTheFirstAndIsolatesTheRest) {
  function.average_us = 10;
  std::vector<Task*> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(submit());
  uint64_t key = grant(1);
  ASSERT_EQ(comm.pushed.size(), 3u);
  comm.clear();
  submitter.lease_broken(key);
  EXPECT_EQ(comm.exits_asked, std::vector<uint64_t>{key});
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::SIGNALED);
  info.set_signal(9);
  submitter.worker_exit(key, info);
  submitter.check_invariants();
  EXPECT_EQ(tasks[0]->retries_left, 2);
  ASSERT_EQ(comm.attempts_failed.size(), 1u);  // The other tasks had not started.
  EXPECT_EQ(comm.attempts_failed[0].first, 0);
  EXPECT_EQ(tasks[1]->retries_left, 3);
  EXPECT_TRUE(comm.failed.empty());
  comm.clear();
  uint64_t next = grant(2);
  EXPECT_EQ(comm.pushed.size(), 1u);  // Suspects are pushed one at a time.
  finish(next, comm.pushed[0].second, 10);
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
  ASSERT_EQ(comm.failed.size(), 1u);
  EXPECT_EQ(comm.failed[0].first, task);
  EXPECT_EQ(comm.failed[0].second.code(), static_cast<int>(Code::kWorkerCrashed));
  EXPECT_NE(comm.failed[0].second.message().find("signal 11"), std::string::npos);
  EXPECT_EQ(submitter.pending(), 0);
}

TEST_F(SubmitterTest, NodeDeathHasItsOwnErrorCode) {
  submit(0);
  uint64_t key = grant(1);
  submitter.lease_broken(key);
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::NODE_DIED);
  submitter.worker_exit(key, info);
  ASSERT_EQ(comm.failed.size(), 1u);
  EXPECT_EQ(comm.failed[0].second.code(), static_cast<int>(Code::kNodeDied));
}

TEST_F(SubmitterTest, UnretriableTasksAreNeverPipelined) {
  function.average_us = 1;
  Task* a = submit(0);
  Task* b = submit(0);
  uint64_t key = grant(1);
  ASSERT_EQ(comm.pushed.size(), 1u);
  finish(key, a, 1);
  ASSERT_EQ(comm.pushed.size(), 2u);
  finish(key, b, 1);
}

TEST_F(SubmitterTest, IdleLeaseTakesBackUnstartedWork) {
  function.average_us = 400;
  std::vector<Task*> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(submit());
  uint64_t a = grant(1);
  ASSERT_EQ(comm.pushed.size(), 10u);
  comm.clear();
  EXPECT_GT(function.scheduling_class->unstarted_in_flight, 0);
  uint64_t b = grant(2);
  ASSERT_EQ(comm.taken_back.size(), 1u);
  EXPECT_EQ(comm.taken_back[0].first, a);
  EXPECT_EQ(comm.taken_back[0].second, 5);
  comm.clear();
  submitter.task_returned(a, tasks[9], now);
  submitter.check_invariants();
  ASSERT_EQ(comm.pushed.size(), 1u);
  EXPECT_EQ(comm.pushed[0].first, b);
}

TEST_F(SubmitterTest, WhatWaitsBehindATaskThatRunsLongerThanMeasuredComesBack) {
  function.average_us = 1;
  Task* slow = submit();
  Task* second = submit();
  Task* third = submit();
  uint64_t a = grant(1);
  ASSERT_EQ(comm.pushed.size(), 3u);
  EXPECT_GE(comm.demands.back().want, 1);  // Another worker remains wanted.
  comm.clear();
  submitter.tick(now);
  EXPECT_TRUE(comm.taken_back.empty());
  submitter.tick(now += settings.pipeline_target_us);
  EXPECT_TRUE(comm.taken_back.empty());  // One pipeline_target_us is not long enough.
  now += 3 * settings.pipeline_target_us;
  EXPECT_GT(submitter.tick(now), now);
  EXPECT_EQ(comm.taken_back, (std::vector<std::pair<uint64_t, int>>{{a, 2}}));
  submitter.tick(now += settings.pipeline_target_us);
  EXPECT_EQ(comm.taken_back.size(), 1u);  // The same tasks are not taken back twice.
  submitter.task_returned(a, third, now);
  submitter.task_returned(a, second, now);
  submitter.check_invariants();
  Task* fourth = submit();
  EXPECT_TRUE(comm.pushed.empty());
  ASSERT_FALSE(comm.demands.empty());
  // The average was wrong, so more workers are wanted than follow from it.
  EXPECT_EQ(comm.demands.back().want, 2);
  uint64_t b = grant(2);
  EXPECT_EQ(comm.pushed,
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
    now += 4 * settings.pipeline_target_us;
    finish(key, task, 1);
  }
  EXPECT_TRUE(comm.taken_back.empty());
}

TEST_F(SubmitterTest, RevokedLeaseGoesBackWhenItsTaskIsDone) {
  Task* task = submit();
  uint64_t key = grant(5);
  comm.clear();
  submitter.leases_revoked(NodeKey::nil(), {5});
  EXPECT_TRUE(comm.returned.empty());
  finish(key, task, 10);
  EXPECT_EQ(comm.returned, std::vector<uint64_t>{5});
}

TEST_F(SubmitterTest, RedirectMovesDemandAndIsWithdrawnWhenNothingComes) {
  function.average_us = 1'000'000;
  for (int i = 0; i < 64; ++i) submit();
  comm.clear();
  NodeId other;
  other.data()[0] = 1;
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, other, 2, 101, now);
  ASSERT_FALSE(comm.demands.empty());
  EXPECT_EQ(comm.demands[0].node, other);
  EXPECT_EQ(comm.demands[0].want, 2);
  comm.clear();
  now += 3'000'000;
  submitter.tick(now);
  ASSERT_FALSE(comm.demands.empty());
  EXPECT_EQ(comm.demands[0].node, other);
  EXPECT_EQ(comm.demands[0].want, 0);
}

TEST_F(SubmitterTest, ARedirectOfALeavingNodeMovesWhatThatNodeWasAskedFor) {
  function.average_us = 1'000'000;
  for (int i = 0; i < 64; ++i) submit();
  NodeId leaving, other;
  leaving.data()[0] = 1;
  other.data()[0] = 2;
  submitter.redirected(NodeKey::nil(), function.scheduling_class->id, leaving, 2, 101, now);
  const int local = function.scheduling_class->local_want;
  comm.clear();
  submitter.redirected(leaving, function.scheduling_class->id, other, 2, 7, now);
  ASSERT_EQ(comm.demands.size(), 1u);
  EXPECT_EQ(comm.demands[0].node, other);
  EXPECT_EQ(comm.demands[0].want, 2);
  EXPECT_EQ(function.scheduling_class->local_want, local);
  comm.clear();
  submitter.redirected(leaving, function.scheduling_class->id, other, 1, 8, now);
  EXPECT_TRUE(comm.demands.empty()) << "nothing is wanted of it any more";
}

TEST_F(SubmitterTest, AUserExceptionWithRetriesRunsAgain) {
  Task* task = submit(1);
  uint64_t key = grant(1);
  comm.clear();
  submitter.retry(key, task, Submitter::Cost::kRetry, now);
  submitter.check_invariants();
  ASSERT_EQ(comm.pushed.size(), 1u);
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
  ASSERT_EQ(comm.failed.size(), 2u);
  EXPECT_NE(comm.failed[0].second.message().find("no such file"), std::string::npos);
  EXPECT_EQ(comm.failed[0].second.code(), static_cast<int>(Code::kRuntimeEnvSetup));
  EXPECT_EQ(submitter.pending(), 0);
}

}  // namespace
}  // namespace rt::worker
