// The fixture of the tests of Submitter: a recording SubmitSink, tasks, and virtual time.
#pragma once

#include <gtest/gtest.h>

#include <set>

#include "common/base/rng.h"
#include "worker/core/submitter.h"

namespace rt::worker {

struct SubmitRecorder : SubmitSink {
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
  void connect_lease(const Lease& lease) override { connecting.push_back(lease.key); }
  void push_task(const Lease& lease, const Task& task) override {
    EXPECT_TRUE(lease.channel);
    pushed.push_back({lease.key, const_cast<Task*>(&task)});
  }
  void take_back(const Lease& lease, int count) override {
    EXPECT_TRUE(lease.channel);
    taken_back.push_back({lease.key, count});
  }
  void return_lease(const Lease& lease, bool) override { returned.push_back(lease.id); }
  void ask_exit(const Lease& lease) override { exits_asked.push_back(lease.key); }
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
  void clear() { *this = SubmitRecorder(); }
};

// Stands for the connections to workers.
struct Channel : TaskChannel {};

class SubmitterTest : public ::testing::Test {
 protected:
  SubmitterTest() {
    function.spec.set_name("f");
    (*function.spec.mutable_resources()->mutable_units())["CPU"] = 10000;
    function.scheduling_class = submitter.scheduling_class(function.spec);
  }
  ~SubmitterTest() override { submitter.check_invariants(); }
  Task* submit(int retries = 3) {
    Task* task = tasks.take();
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
    EXPECT_EQ(sink.connecting.size(), 1u);
    uint64_t key = sink.connecting.empty() ? 0 : sink.connecting.back();
    sink.connecting.clear();
    submitter.lease_ready(key, channel, now);
    submitter.check_invariants();
    return key;
  }
  void pass(int64_t us) {
    now.steady_us += us;
    now.wall_us += us;
  }
  void finish(uint64_t key, Task* task, int64_t duration) {
    ASSERT_EQ(submitter.reply_of(key, task->seq), task);
    submitter.finished(key, task, duration, now);
    tasks.give_back(task);
    submitter.check_invariants();
  }

  Settings settings;
  SubmitRecorder sink;
  TaskPool tasks;
  Channel channel;
  Submitter submitter{sink, settings};
  Template function;
  Now now{.steady_us = 1'000'000, .wall_us = 5'000'000'000};
  uint64_t next_id = 0;
};

}  // namespace rt::worker
