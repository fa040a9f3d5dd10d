// The fixture of the tests of ActorCalls: a sink that records, an actor, and news of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/core/actor_calls.h"

namespace rt::worker {

struct ActorRecorder : ActorSink {
  std::vector<ActorId> subscribed, connecting, asked, forgotten;
  ActorId held = ActorId::nil();
  std::vector<Task*> pushed;
  std::vector<std::pair<Task*, proto::ErrorValue>> failed;
  std::vector<std::pair<int, proto::ErrorValue>> attempts_failed;
  void subscribe_actor(const ActorId& id) override { subscribed.push_back(id); }
  bool forget_actor(const ActorId& id) override {
    if (id == held) return false;
    forgotten.push_back(id);
    return true;
  }
  void connect_actor(const ActorLink& actor) override { connecting.push_back(actor.id); }
  void push_call(const ActorLink& actor, const Task& task) override {
    EXPECT_TRUE(actor.channel);
    pushed.push_back(const_cast<Task*>(&task));
  }
  std::vector<std::string> full;  // The groups whose windows were reported.
  int held_back_told = 0;
  void window_full(const ActorLink&, const ActorLink::Lane& lane, bool first, bool tell) override {
    if (tell) full.push_back(lane.group);
    held_back_told += first;
  }
  Maker maker = Maker::kNobody;
  Maker maker_of(const ActorId&) const override { return maker; }
  void query_actor(const ActorId& id) override { asked.push_back(id); }
  void fail_task(Task* task, const proto::ErrorValue& error) override {
    failed.push_back({task, error});
  }
  void attempt_failed(const Task& task, const proto::ErrorValue& error) override {
    attempts_failed.push_back({task.attempt, error});
  }
};

class ActorCallsTest : public ::testing::Test {
 protected:
  ~ActorCallsTest() override { calls.check_invariants(); }
  Task* call(int retries = 0) { return call_in(method, retries); }
  Task* call_in(const Template& of_group, int retries = 0) {
    Task* task = tasks.take();
    task->id = make_task_id(++next, id);
    task->function = &of_group;
    task->retries_left = retries;
    calls.submit(calls.link(id), task);
    return task;
  }
  proto::ActorInfo news(proto::ActorState state, int64_t epoch) const {
    proto::ActorInfo info;
    *info.mutable_spec() = spec;
    info.set_state(state);
    info.set_epoch(epoch);
    info.mutable_spec()->set_actor_id(id.binary());
    info.mutable_death()->set_kind(proto::ExitInfo::SIGNALED);
    info.mutable_death()->set_signal(9);
    return info;
  }
  void update(proto::ActorState state, int64_t epoch) {
    const proto::ActorInfo info = news(state, epoch);
    calls.actor_update(id, info, now);
    calls.check_invariants();
  }
  void answer(proto::ActorState state, int64_t epoch) {
    const proto::ActorInfo info = news(state, epoch);
    calls.query_answered(id, &info, now);
    calls.check_invariants();
  }
  void alive(int64_t epoch = 1) {
    update(proto::ACTOR_ALIVE, epoch);
    calls.connected(id, channel);
    calls.check_invariants();
  }
  void lose_connection() {
    calls.connection_lost(id, now);
    calls.check_invariants();
  }
  // Lets the time come at which the core wants to tick; none does if it wants no tick.
  void wait_for_tick() {
    now.steady_us = std::max(now.steady_us, calls.next_tick_us());
    calls.tick(now);
    calls.check_invariants();
  }
  void finish(Task* task) {
    ActorLink* link = calls.find(id);
    ASSERT_EQ(calls.reply_of(*link, task->seq), task);
    calls.finished(*link, task);
    tasks.give_back(task);
  }
  Settings settings;
  ActorRecorder sink;
  TaskPool tasks;
  struct : TaskChannel {
  } channel;  // Stands for the connection to the actor's process.
  Now now{.steady_us = 1'000'000, .wall_us = 5'000'000'000};
  ActorCalls calls{sink, settings};
  Template method;
  proto::ActorSpec spec;
  ActorId id = make_actor_id(job_id_from_int(1), 77, 1);
  uint64_t next = 0;
};

}  // namespace rt::worker
