// The caller's half of actor calls, against a recording ActorSink: order, restarts, deaths and
// cancellation.
#include "worker/core/actor_calls.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rt::worker {
namespace {

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

TEST_F(ActorCallsTest, CallsWaitForTheActorAndKeepTheirOrder) {
  Task* a = call();
  Task* b = call();
  EXPECT_EQ(sink.subscribed.size(), 1u);
  EXPECT_TRUE(sink.pushed.empty());
  alive();
  EXPECT_EQ(sink.pushed, (std::vector<Task*>{a, b}));
  finish(a);
  finish(b);
}

TEST_F(ActorCallsTest, DeadActorsAreForgottenUnlessAHandleIsLeft) {
  constexpr int kActors = 1000;
  sink.held = id;
  for (int i = 0; i < kActors; ++i) {
    calls.link(id);
    update(proto::ACTOR_DEAD, 1);
    id = make_actor_id(job_id_from_int(1), 78 + i, 1);
  }
  EXPECT_EQ(sink.subscribed.size(), static_cast<size_t>(kActors));
  EXPECT_GT(sink.forgotten.size(), static_cast<size_t>(kActors) / 2);
  ASSERT_TRUE(calls.find(sink.held));
  EXPECT_EQ(calls.find(sink.held)->state, ActorLink::State::kDead);
  EXPECT_FALSE(calls.find(sink.forgotten.front()));
  id = sink.forgotten.front();
  Task* task = call();  // Asks the head again, whose answer is the death.
  EXPECT_EQ(sink.subscribed.back(), id);
  update(proto::ACTOR_DEAD, 1);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, task);
}

TEST_F(ActorCallsTest, ACallWithoutItsArgumentsHoldsBackLaterOnes) {
  calls.link(id);
  alive();
  Task* waiting = tasks.take();
  waiting->id = make_task_id(++next, id);
  waiting->function = &method;
  waiting->unready_args = 1;
  calls.submit(calls.link(id), waiting);
  Task* later = call();
  EXPECT_TRUE(sink.pushed.empty());
  waiting->unready_args = 0;
  calls.args_ready(id);
  EXPECT_EQ(sink.pushed, (std::vector<Task*>{waiting, later}));
  finish(waiting);
  finish(later);
}

TEST_F(ActorCallsTest, ACancelledCallInTheQueueFailsAndThoseBehindItGoOn) {
  ActorLink& actor = calls.link(id);
  alive();
  Task* waiting = tasks.take();
  waiting->id = make_task_id(++next, id);
  waiting->function = &method;
  waiting->unready_args = 1;
  calls.submit(calls.link(id), waiting);
  Task* later = call();
  EXPECT_FALSE(calls.cancel(actor, waiting));
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, waiting);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kCancelled));
  EXPECT_EQ(sink.pushed, std::vector<Task*>{later});
  finish(later);
}

TEST_F(ActorCallsTest, ACancelledCallInFlightIsNotRetriedByTheNextLife) {
  Task* task = call(-1);
  alive();
  EXPECT_TRUE(calls.cancel(*calls.find(id), task));
  EXPECT_TRUE(sink.failed.empty());
  lose_connection();
  update(proto::ACTOR_RESTARTING, 2);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kCancelled));
  EXPECT_EQ(calls.pending(), 0);
}

TEST_F(ActorCallsTest, OutOfOrderActorsOvertake) {
  calls.link(id).out_of_order = true;
  alive();
  Task* waiting = tasks.take();
  waiting->id = make_task_id(++next, id);
  waiting->function = &method;
  waiting->unready_args = 1;
  calls.submit(calls.link(id), waiting);
  Task* later = call();
  EXPECT_EQ(sink.pushed, std::vector<Task*>{later});
  finish(later);
}

TEST_F(ActorCallsTest, RestartRunsUncertainCallsAgainOnlyWithRetries) {
  calls.link(id);
  alive();
  Task* once = call(0);
  Task* again = call(1);
  lose_connection();
  EXPECT_TRUE(sink.asked.empty());
  wait_for_tick();
  EXPECT_EQ(sink.asked, std::vector<ActorId>{id});
  EXPECT_EQ(calls.next_tick_us(), -1) << "asked again before there is an answer";
  answer(proto::ACTOR_RESTARTING, 2);
  EXPECT_EQ(calls.next_tick_us(), -1);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, once);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorUnavailable));
  sink.pushed.clear();
  alive(2);
  EXPECT_EQ(sink.pushed, std::vector<Task*>{again});
  EXPECT_EQ(again->retries_left, 0);
  ASSERT_EQ(sink.attempts_failed.size(), 1u);
  EXPECT_EQ(sink.attempts_failed[0].first, 0);
  EXPECT_EQ(sink.attempts_failed[0].second.code(), static_cast<int>(Code::kActorUnavailable));
  finish(again);
}

TEST_F(ActorCallsTest, CallsInTheGapFailWithoutRetriesWhenTheActorRestarts) {
  calls.link(id);
  alive();
  lose_connection();
  Task* gap = call(0);
  Task* patient = call(-1);
  EXPECT_TRUE(sink.failed.empty());
  update(proto::ACTOR_RESTARTING, 2);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, gap);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorUnavailable));
  Task* later = call(0);  // Fails at once, because the actor is known to be restarting.
  ASSERT_EQ(sink.failed.size(), 2u);
  EXPECT_EQ(sink.failed[1].first, later);
  EXPECT_EQ(calls.pending(), 1);
  alive(2);
  EXPECT_EQ(sink.pushed, std::vector<Task*>{patient});
  finish(patient);
}

TEST_F(ActorCallsTest, CallsInTheGapFailWithoutRetriesWhenTheNextLifeIsThere) {
  calls.link(id);
  alive();
  lose_connection();
  Task* gap = call(0);
  alive(2);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, gap);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorUnavailable));
  EXPECT_TRUE(sink.pushed.empty());
}

TEST_F(ActorCallsTest, CallsInTheGapRunWhenOnlyTheConnectionBroke) {
  calls.link(id);
  alive();
  lose_connection();
  Task* gap = call(0);
  alive();
  EXPECT_EQ(sink.pushed, std::vector<Task*>{gap});
  finish(gap);
}

TEST_F(ActorCallsTest, CallsInTheGapOfADeadActorLearnOfItsDeath) {
  calls.link(id);
  alive();
  lose_connection();
  Task* gap = call(0);
  update(proto::ACTOR_ALIVE, 1);  // The head has not learned of the death yet.
  lose_connection();
  EXPECT_TRUE(sink.failed.empty());
  update(proto::ACTOR_DEAD, 1);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, gap);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorDied));
}

TEST_F(ActorCallsTest, DeathFailsEverythingAndLaterCallsWithTheCause) {
  calls.link(id);
  alive();
  call(0);
  call(5);
  update(proto::ACTOR_DEAD, 1);
  lose_connection();
  EXPECT_EQ(sink.failed.size(), 2u);
  call();
  ASSERT_EQ(sink.failed.size(), 3u);
  for (auto& [task, error] : sink.failed) {
    EXPECT_EQ(error.code(), static_cast<int>(Code::kActorDied));
    EXPECT_NE(error.message().find("signal 9"), std::string::npos);
  }
}

TEST_F(ActorCallsTest, RepliesThatCameBeforeADeathAreReadAfterItsNews) {
  calls.link(id);
  alive();
  Task* answered = call();
  Task* unanswered = call();
  update(proto::ACTOR_DEAD, 1);
  EXPECT_TRUE(sink.failed.empty());
  EXPECT_GT(calls.next_tick_us(), now.steady_us);
  Task* later = call();
  EXPECT_EQ(sink.pushed.size(), 2u) << "nothing is sent to a process that has ended";
  finish(answered);
  lose_connection();
  ASSERT_EQ(sink.failed.size(), 2u);
  EXPECT_EQ(sink.failed[0].first, unanswered);
  EXPECT_EQ(sink.failed[1].first, later);
  EXPECT_EQ(calls.next_tick_us(), -1) << "there is nothing more to ask";
}

TEST_F(ActorCallsTest, RepliesThatCameBeforeARestartAreReadAfterItsNews) {
  calls.link(id);
  alive();
  Task* answered = call();
  Task* again = call(1);
  update(proto::ACTOR_RESTARTING, 2);
  Task* gap = call();
  finish(answered);
  lose_connection();
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, gap);
  sink.pushed.clear();
  alive(2);
  EXPECT_EQ(sink.pushed, std::vector<Task*>{again});
  finish(again);
}

TEST_F(ActorCallsTest, AConnectionWithoutAnEndIsNotWaitedForOnceTheHeadConfirmsTheDeath) {
  calls.link(id);
  alive();
  Task* task = call();
  update(proto::ACTOR_DEAD, 1);
  wait_for_tick();
  EXPECT_EQ(sink.asked.size(), 1u);
  answer(proto::ACTOR_ALIVE, 1);  // Given before the death.
  EXPECT_TRUE(sink.failed.empty());
  wait_for_tick();
  EXPECT_EQ(sink.asked.size(), 2u);
  calls.query_failed(id, now);
  wait_for_tick();
  EXPECT_EQ(sink.asked.size(), 3u);
  answer(proto::ACTOR_DEAD, 1);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, task);
}

TEST_F(ActorCallsTest, TheHeadIsAskedUntilItIsCertainWhatBecameOfTheActor) {
  calls.link(id);
  alive();
  EXPECT_EQ(calls.next_tick_us(), -1);
  lose_connection();
  for (size_t asked = 1; asked < 10; ++asked) {
    wait_for_tick();
    EXPECT_EQ(sink.asked.size(), asked);
    calls.tick(now);
    EXPECT_EQ(sink.asked.size(), asked) << "asked twice";
    if (asked % 2) {
      calls.query_failed(id, now);
    } else {
      answer(proto::ACTOR_PENDING, 1);
    }
  }
  alive();
  EXPECT_EQ(calls.next_tick_us(), -1);
  calls.query_failed(id, now);
  EXPECT_EQ(calls.next_tick_us(), -1) << "an answer that nobody needs any more";
}

TEST_F(ActorCallsTest, ADeathIsFinalThoughTheHeadHasLostTheLastEpochs) {
  calls.link(id);
  alive(1);
  update(proto::ACTOR_RESTARTING, 2);
  Task* for_next_life = call(-1);
  EXPECT_TRUE(sink.failed.empty());
  update(proto::ACTOR_DEAD, 1);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed.at(0).first, for_next_life);
}

TEST_F(ActorCallsTest, OldNewsIsIgnored) {
  calls.link(id);
  alive(3);
  update(proto::ACTOR_RESTARTING, 2);
  Task* a = call();
  EXPECT_EQ(sink.pushed, std::vector<Task*>{a});
  finish(a);
}

TEST_F(ActorCallsTest, ABrokenConnectionToALiveActorIsMadeAgain) {
  calls.link(id);
  alive();
  lose_connection();
  sink.connecting.clear();
  update(proto::ACTOR_ALIVE, 1);
  EXPECT_EQ(sink.connecting.size(), 1u);
}

TEST_F(ActorCallsTest, WhatWasInFlightWaitsForTheHeadToKnowOfTheDeath) {
  calls.link(id);
  alive();
  Task* task = call(0);
  lose_connection();
  update(proto::ACTOR_ALIVE, 1);  // The head has not learned of the death yet.
  EXPECT_TRUE(sink.failed.empty());
  update(proto::ACTOR_DEAD, 1);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].first, task);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorDied));
}

TEST_F(ActorCallsTest, ClosedFailsEveryActorsCallsAndLaterOnes) {
  call();
  proto::ExitInfo why;
  why.set_message("the node is gone");
  calls.close(why);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorDied));
  call();
  EXPECT_EQ(sink.failed.size(), 2u);
}

TEST_F(ActorCallsTest, PendingCallsAreBounded) {
  call();
  call();
  EXPECT_TRUE(calls.admit(calls.link(id), 3));
  auto refused = calls.admit(calls.link(id), 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
}

class ActorLanesTest : public ActorCallsTest {
 protected:
  ActorLanesTest() {
    settings.actor_max_in_flight = 3;
    health.spec.set_concurrency_group("health");
    (*spec.mutable_concurrency_groups())["health"] = 1;
  }
  void finish_all() {
    while (!calls.find(id)->in_flight.empty()) finish(calls.find(id)->in_flight.back());
  }
  Template health;
};

TEST_F(ActorLanesTest, AFullWindowHoldsBackOnlyItsOwnGroup) {
  calls.link(id);
  alive();
  std::vector<Task*> sent;
  for (int i = 0; i < 3; ++i) sent.push_back(call());
  Task* waiting = call();
  EXPECT_EQ(sink.pushed, sent);
  EXPECT_EQ(sink.full, std::vector<std::string>{""});
  EXPECT_EQ(calls.count_held_back(), 1);
  Task* check = call_in(health);
  sent.push_back(check);
  EXPECT_EQ(sink.pushed, sent);
  EXPECT_EQ(calls.pending(), 5);
  EXPECT_FALSE(calls.admit(calls.link(id), 5));
  calls.check_invariants();
  finish(check);  // Makes room in its own group only.
  EXPECT_EQ(sink.pushed, sent);
  EXPECT_EQ(sink.held_back_told, 1);
  finish(sent[1]);
  sent.push_back(waiting);
  EXPECT_EQ(sink.pushed, sent);
  EXPECT_EQ(calls.count_held_back(), 0);
  call();
  EXPECT_EQ(sink.full.size(), 1u) << "a lane is reported once";
  EXPECT_EQ(sink.held_back_told, 2) << "nobody counts any more once nothing is held back";
  finish_all();
  finish_all();
}

TEST_F(ActorLanesTest, AWindowIsNeverSmallerThanWhatMayRunAtOnce) {
  spec.set_max_concurrency(10);
  (*spec.mutable_concurrency_groups())["health"] = 5;
  // Calls that were made before the caller has heard of the actor have the same window.
  for (int i = 0; i < 12; ++i) call();
  alive();
  EXPECT_EQ(sink.pushed.size(), 10u);
  for (int i = 0; i < 12; ++i) call_in(health);
  EXPECT_EQ(sink.pushed.size(), 15u);
  EXPECT_EQ(sink.full, (std::vector<std::string>{"", "health"}));
  while (calls.pending() > 0) finish(calls.find(id)->in_flight.back());
  EXPECT_EQ(sink.pushed.size(), 24u);
}

TEST_F(ActorLanesTest, ARestartKeepsTheOrderOfEachGroup) {
  calls.link(id);
  alive();
  std::vector<Task*> first, second;
  for (int i = 0; i < 5; ++i) {
    first.push_back(call(-1));
    second.push_back(call_in(health, -1));
  }
  EXPECT_EQ(sink.pushed.size(), 6u);
  lose_connection();
  update(proto::ACTOR_RESTARTING, 2);
  calls.check_invariants();
  sink.pushed.clear();
  alive(2);
  while (calls.pending() > 0) finish(calls.find(id)->in_flight.front());
  auto of = [&](const Template& function) {
    std::vector<Task*> found;
    for (size_t i = 0; i < sink.pushed.size(); ++i) {
      // The tasks are gone, so they are told apart by address.
      const auto& group = &function == &method ? first : second;
      if (std::find(group.begin(), group.end(), sink.pushed[i]) != group.end())
        found.push_back(sink.pushed[i]);
    }
    return found;
  };
  EXPECT_EQ(of(method), first);
  EXPECT_EQ(of(health), second);
}

TEST_F(ActorLanesTest, DeathFailsTheCallsOfAllGroups) {
  calls.link(id);
  alive();
  for (int i = 0; i < 5; ++i) {
    call();
    call_in(health);
  }
  lose_connection();
  update(proto::ACTOR_DEAD, 1);
  EXPECT_EQ(sink.failed.size(), 10u);
  call_in(health);
  EXPECT_EQ(sink.failed.size(), 11u);
  EXPECT_EQ(calls.pending(), 0);
}

TEST_F(ActorLanesTest, OnlyAFewFullWindowsAreReported) {
  for (int actor = 0; actor < 50; ++actor) {
    id = make_actor_id(job_id_from_int(1), 1000 + actor, 1);
    calls.link(id);
    alive();
    for (int i = 0; i < 4; ++i) call();
  }
  EXPECT_EQ(sink.full.size(), 10u);
}

TEST_F(ActorCallsTest, CallsToAnActorThatIsGivenUpFailWhateverTheHeadHasSaid) {
  update(proto::ACTOR_DEPENDENCIES_UNREADY, 1);
  call();
  calls.give_up(id, "its arguments were refused");
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].second.exit().message(), "its arguments were refused");
}

TEST_F(ActorCallsTest, AnActorTheHeadDoesNotKnowIsDead) {
  call();
  calls.actor_unknown(id, now);
  ASSERT_EQ(sink.failed.size(), 1u);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorDied));
}

TEST_F(ActorCallsTest, AnActorThatAnotherProcessMayBeMakingIsWaitedForWhileThatMayTake) {
  sink.maker = ActorSink::Maker::kAnother;
  call();
  calls.actor_unknown(id, now);
  const int64_t since_us = now.steady_us;
  while (sink.failed.empty()) {
    const size_t asked = sink.asked.size();
    wait_for_tick();
    ASSERT_EQ(sink.asked.size(), asked + 1);
    calls.query_answered(id, nullptr, now);
    calls.check_invariants();
  }
  EXPECT_GE(now.steady_us - since_us, settings.node_timeout_ms * 1000);
  EXPECT_LT(now.steady_us - since_us, settings.node_timeout_ms * 1000 + 1'000'000);
  EXPECT_EQ(sink.failed[0].second.code(), static_cast<int>(Code::kActorDied));
}

TEST_F(ActorCallsTest, AnActorThatAnotherProcessWasMakingIsUsedOnceItIsThere) {
  sink.maker = ActorSink::Maker::kAnother;
  call();
  calls.actor_unknown(id, now);
  wait_for_tick();
  answer(proto::ACTOR_PENDING, 1);
  EXPECT_EQ(calls.next_tick_us(), -1) << "the head tells what comes";
  alive();
  EXPECT_EQ(sink.pushed.size(), 1u);
}

TEST_F(ActorCallsTest, AnActorThatThisProcessIsMakingIsWaitedFor) {
  sink.maker = ActorSink::Maker::kThisProcess;
  call();
  calls.actor_unknown(id, now);
  EXPECT_EQ(calls.next_tick_us(), -1);
  EXPECT_TRUE(sink.failed.empty());
}

// A head that was started again may not know the actor any more, and then says nothing of it.
TEST_F(ActorCallsTest, ANewHeadIsAskedForTheActorsThatWaitForItsWord) {
  for (proto::ActorState state : {proto::ACTOR_PENDING, proto::ACTOR_RESTARTING}) {
    id = make_actor_id(job_id_from_int(1), 100 + state, 1);
    calls.link(id);
    update(state, 1);
    Task* waiting = call(-1);
    calls.subscriptions_renewed(now);
    sink.asked.clear();
    wait_for_tick();
    EXPECT_EQ(sink.asked, std::vector<ActorId>{id});
    calls.query_failed(id, now);
    wait_for_tick();
    calls.query_answered(id, nullptr, now);
    ASSERT_FALSE(sink.failed.empty());
    EXPECT_EQ(sink.failed.back().first, waiting);
  }
}

TEST_F(ActorCallsTest, ANewHeadIsNotAskedForActorsThatAreConnected) {
  call();
  alive();
  calls.subscriptions_renewed(now);
  EXPECT_EQ(calls.next_tick_us(), -1);
}

}  // namespace
}  // namespace rt::worker
