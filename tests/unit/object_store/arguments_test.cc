// The arguments of tasks in the core of the object store: who is admitted when, what goes first,
// and who fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "tests/unit/object_store/core_fixture.h"

namespace rt::store {
namespace {

using ::testing::HasSubstr;

// Objects of 6 MiB on another node; the store holds two of them, and not three.
class ArgumentsTest : public StoreCoreTest {
 protected:
  static constexpr int64_t kSize = 6 * kMiB;

  static WantedItem remote(uint32_t n, int64_t size = kSize) {
    return {object(n), {{node(7), "far", 7, size}}};
  }
  void ask(ClientId client, Ticket ticket, std::vector<WantedItem> items) {
    core->get(client, ticket, std::move(items), 60'000'000, now, ticket);
    core->check_invariants();
  }
  // The fetcher copies the object that the core has just asked for.
  void copy(uint32_t n, int64_t size = kSize) {
    ASSERT_FALSE(sink.fetches.empty());
    ASSERT_EQ(take(sink.fetches).id, object(n));
    put(kFetcher, object(n), size);
    core->release(kFetcher, {object(n)}, now, {});
    core->check_invariants();
  }
  // The call that was answered, with all objects.
  CallId answered() {
    auto got = take(sink.got);
    for (const GetAnswer& answer : got.answers) EXPECT_TRUE(answer.found) << answer.error.message;
    return got.call;
  }
  // The client has told the owners of the copies that it held.
  void end(ClientId client, Ticket ticket, const std::vector<ObjectId>& held) {
    core->release(client, {}, now, held);
    core->release(client, held, now, {});
    core->update_tasks(client, {ticket}, {}, now);
    core->check_invariants();
  }
  // A task of Alice that has two arguments and runs.
  void run_alice() {
    ask(kAlice, 1, {remote(1), remote(2)});
    copy(1);
    copy(2);
    EXPECT_EQ(answered(), 1u);
  }
};

TEST_F(ArgumentsTest, ATaskGetsRoomForAllItsArgumentsOrNone) {
  ask(kAlice, 1, {remote(1), remote(2)});
  ask(kBob, 2, {remote(3), remote(4)});
  copy(1);
  copy(2);
  EXPECT_EQ(answered(), 1u);
  // There is room for one argument of Bob's task, and it is not fetched.
  EXPECT_TRUE(sink.is_empty());
  end(kAlice, 1, {object(1), object(2)});
  copy(3);
  copy(4);
  EXPECT_EQ(answered(), 2u);
  end(kBob, 2, {object(3), object(4)});
}

TEST_F(ArgumentsTest, TasksWaitAsLongAsAnotherOneRunsWithoutFailing) {
  run_alice();
  ask(kBob, 2, {remote(3), remote(4)});
  for (int i = 0; i < 100; i++) pass(10'000'000);
  EXPECT_TRUE(sink.is_empty());
  end(kAlice, 1, {object(1), object(2)});
  copy(3);
  copy(4);
  EXPECT_EQ(answered(), 2u);
}

TEST_F(ArgumentsTest, AClientKnowsWhichOfItsTasksWaitForRoom) {
  run_alice();
  EXPECT_TRUE(sink.waiting.empty());
  ask(kBob, 2, {remote(3), remote(4)});
  EXPECT_EQ(sink.waiting, (std::multiset<Ticket>{2}));
  end(kAlice, 1, {object(1), object(2)});
  EXPECT_TRUE(sink.waiting.empty());  // They are on their way.
  copy(3);
  copy(4);
  EXPECT_EQ(answered(), 2u);
}

TEST_F(ArgumentsTest, TheOrderIsThatOfTheRequests) {
  run_alice();
  ask(kBob, 2, {remote(3), remote(4)});
  // This would fit beside what Alice holds, but would then delay Bob.
  ask(kCarol, 3, {remote(5, 3 * kMiB)});
  EXPECT_TRUE(sink.is_empty());
  end(kAlice, 1, {object(1), object(2)});
  copy(3);
  copy(4);
  copy(5, 3 * kMiB);
  EXPECT_EQ(answered(), 2u);
  EXPECT_EQ(answered(), 3u);
}

TEST_F(ArgumentsTest, ATaskThatNeedsNoRoomWaitsForNobody) {
  run_alice();
  put(kCarol, object(8), kMiB);
  ask(kBob, 2, {remote(3), remote(4)});
  ask(kCarol, 3, {{object(8), {}}, remote(1)});
  EXPECT_EQ(answered(), 3u);
  // A later task of Bob's process might have to run after the one that waits.
  ask(kBob, 4, {remote(1)});
  EXPECT_TRUE(sink.is_empty());
  core->client_gone(kBob, now);
}

TEST_F(ArgumentsTest, AGetOfARunningTaskGoesBeforeArguments) {
  run_alice();
  ask(kBob, 2, {remote(3), remote(4)});
  core->get(kCarol, 9, {remote(5)}, -1, now, 0);
  for (int i = 0; i < 10; i++) pass(10'000'000);
  EXPECT_TRUE(sink.is_empty());
  end(kAlice, 1, {object(1), object(2)});
  EXPECT_TRUE(sink.fetches.front().first);
  copy(5);
  EXPECT_EQ(answered(), 9u);
  EXPECT_TRUE(sink.is_empty());
  core->release(kCarol, {object(5)}, now, {});
  copy(3);
  copy(4);
  EXPECT_EQ(answered(), 2u);
}

TEST_F(ArgumentsTest, ReleasedCopiesMakeRoomAtOnce) {
  run_alice();
  core->get(kBob, 9, {remote(5)}, -1, now, 0);
  core->release(kAlice, {object(1)}, now, {});
  // No time has passed.
  copy(5);
  EXPECT_EQ(answered(), 9u);
}

TEST_F(ArgumentsTest, ArgumentsLargerThanTheStoreFailAtOnce) {
  ask(kAlice, 1, {remote(1), remote(2), remote(3)});
  auto got = take(sink.got);
  ASSERT_EQ(got.answers.size(), 3u);
  for (const GetAnswer& answer : got.answers) {
    EXPECT_EQ(answer.error.code, Code::kObjectStoreFull);
    EXPECT_THAT(answer.error.message, HasSubstr("can never be here together"));
  }
  // The same object twice needs room once.
  ask(kAlice, 2, {remote(1), remote(1), remote(1)});
  copy(1);
  EXPECT_EQ(answered(), 2u);
}

TEST_F(ArgumentsTest, WithoutATaskThatWillMakeRoomTheWaitIsLimited) {
  put(kCarol, object(8), 10 * kMiB);
  ask(kBob, 2, {remote(3), remote(4)});
  pass(4'900'000);
  EXPECT_TRUE(sink.is_empty());
  pass(100'000);
  auto got = take(sink.got);
  EXPECT_EQ(got.call, 2u);
  for (const GetAnswer& answer : got.answers) {
    EXPECT_EQ(answer.error.code, Code::kObjectStoreFull);
    EXPECT_THAT(answer.error.message, HasSubstr("no room for the arguments of the task"));
    EXPECT_THAT(answer.error.message, HasSubstr("12.0 MiB wanted"));
  }
}

TEST_F(ArgumentsTest, ABlockedTaskMakesNoRoom) {
  run_alice();
  ask(kBob, 2, {remote(3), remote(4)});
  pass(60'000'000);
  // Alice's task waits for something, perhaps for the result of Bob's.
  core->update_tasks(kAlice, {}, true, now);
  // A task that fits is admitted behind Bob, because Alice may wait for that.
  ask(kCarol, 3, {remote(5, 3 * kMiB)});
  copy(5, 3 * kMiB);
  EXPECT_EQ(answered(), 3u);
  core->update_tasks(kCarol, {}, true, now);
  pass(4'000'000);
  core->update_tasks(kAlice, {}, false, now);
  pass(4'000'000);
  EXPECT_TRUE(sink.is_empty());
  core->update_tasks(kAlice, {}, true, now);
  pass(5'000'000);
  auto got = take(sink.got);
  EXPECT_EQ(got.call, 2u);
  EXPECT_EQ(got.answers[0].error.code, Code::kObjectStoreFull);
}

TEST_F(ArgumentsTest, GivenUpArgumentsAreNotFetched) {
  run_alice();
  ask(kBob, 2, {remote(3), remote(4)});
  ask(kCarol, 3, {remote(5), remote(6)});
  core->update_tasks(kBob, {2}, {}, now);
  EXPECT_FALSE(take(sink.got).answers[0].found);
  end(kAlice, 1, {object(1), object(2)});
  copy(5);
  copy(6);
  EXPECT_EQ(answered(), 3u);
  // A client cannot wait twice for one task.
  ask(kCarol, 3, {remote(5)});
  EXPECT_THAT(take(sink.closed).why.message, HasSubstr("asked twice"));
}

TEST_F(ArgumentsTest, ACopyThatNobodyTakesIsDropped) {
  ask(kBob, 2, {remote(3)});
  pass(60'000'001);
  EXPECT_EQ(take(sink.got).answers[0].error.code, Code::kTimeout);
  copy(3);
  EXPECT_EQ(core->stats().objects, 0);
}

TEST_F(ArgumentsTest, ACopyWhoseHolderDiedIsDropped) {
  run_alice();
  ask(kBob, 2, {remote(1)});
  EXPECT_EQ(answered(), 2u);
  core->client_gone(kAlice, now);
  core->check_invariants();
  EXPECT_EQ(core->stats().objects, 1);
  // Bob has not told the owner either.
  core->release(kBob, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 0);
}

TEST_F(ArgumentsTest, AClientThatEndsLeavesTheLine) {
  put(kCarol, object(8), 10 * kMiB);
  ask(kAlice, 1, {remote(1), remote(2)});
  ask(kBob, 2, {remote(3), remote(4)});
  core->client_gone(kAlice, now);
  core->check_invariants();
  core->client_gone(kBob, now);
  core->check_invariants();
  EXPECT_EQ(core->next_tick_us(), -1);
}

TEST_F(ArgumentsTest, CopiesThatAreHereAreNotEvictedForTheRest) {
  run_alice();
  end(kAlice, 1, {object(1), object(2)});
  ask(kBob, 2, {remote(1), remote(3)});
  copy(3);
  EXPECT_EQ(answered(), 2u);
  EXPECT_TRUE(core->contains(object(1)));
  EXPECT_FALSE(core->contains(object(2)));
}

TEST_F(ArgumentsTest, AFailedFetchGivesItsRoomBack) {
  ask(kAlice, 1, {remote(1), remote(2)});
  ask(kBob, 2, {remote(3)});
  EXPECT_EQ(take(sink.fetches).id, object(1));
  core->on_fetch_failed(object(1), make_error(Code::kObjectLost, "the node is gone"), now);
  core->check_invariants();
  EXPECT_EQ(take(sink.fetches).id, object(2));
  copy(3);
  EXPECT_EQ(answered(), 2u);
  put(kFetcher, object(2), kSize);
  auto got = take(sink.got);
  EXPECT_EQ(got.answers[0].error.message, "the node is gone");
  EXPECT_TRUE(got.answers[1].found);
}

TEST_F(ArgumentsTest, AnObjectOfAnotherSizeThanWasSaidFindsItsRoom) {
  ask(kAlice, 1, {remote(1, kMiB)});
  copy(1, 7 * kMiB);
  EXPECT_EQ(answered(), 1u);
}

// Workers with queues of tasks, a fetcher that takes its time, and a driver that gets objects, in
// virtual time. Every task ends, and none is ever given a part of its arguments.
class Scenario final : public StoreSink {
 public:
  // With `blocking`, tasks get further objects while they run, so that they may block each other.
  Scenario(uint64_t seed, bool blocking) : rng_(seed), blocking_(blocking) {
    StoreCore::Options options;
    options.capacity = 16 * kMiB;
    core_.emplace(options, *this);
    core_->reserve_ahead(options.capacity);
    for (ClientId id = kAlice; id < kAlice + kWorkers; id++) {
      RT_CHECK(core_->attach(id, worker(id), job_id_from_int(1), 1));
      for (int i = 0; i < 10; i++) workers_[id].queue.push_back(random_task());
    }
  }

  void run() {
    for (auto& [id, worker] : workers_) after(0, [this, id = id] { ask_more(id); });
    constexpr int64_t kLimitUs = int64_t{100'000} * 1'000'000;
    for (;;) {
      int64_t next = events_.empty() ? kNoDeadline : events_.begin()->first;
      if (const int64_t tick = core_->next_tick_us(); tick >= 0) next = std::min(next, tick);
      if (done_ == 10 * kWorkers) break;
      ASSERT_LT(next, kLimitUs) << "a task waits for ever; " << done_ << " are done";
      now_.steady_us = std::max(now_.steady_us, next);
      core_->tick(now_);
      while (!events_.empty() && events_.begin()->first <= now_.steady_us) {
        auto event = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        event();
        core_->check_invariants();
      }
    }
    // Only tasks that hold arguments and want more can make each other fail.
    EXPECT_TRUE(blocking_ || failed_ == 0) << failed_;
    EXPECT_GT(done_, failed_);
  }

 private:
  static constexpr int kWorkers = 4;
  struct Item {
    ObjectId id;
    int64_t size;
  };
  struct Task {
    std::vector<Item> args;
    std::optional<Item> more;
    int64_t duration_us = 0;
  };
  struct Worker {
    std::deque<Task> queue;
    std::map<Ticket, Task> asked, ready;
    bool running = false;
  };

  Item random_item() {
    auto n = static_cast<uint32_t>(rng_.below(30));
    return {object(n), (1 + n % 5) * kMiB - static_cast<int64_t>(n) * 100};
  }
  Task random_task() {
    Task task;
    for (uint64_t i = 0; i <= rng_.below(3); i++) task.args.push_back(random_item());
    if (blocking_ && rng_.chance(0.3)) task.more = random_item();
    task.duration_us = static_cast<int64_t>(rng_.below(20'000'000));
    return task;
  }
  static std::vector<WantedItem> wanted(const std::vector<Item>& items) {
    std::vector<WantedItem> out;
    for (const Item& item : items) out.push_back({item.id, {{node(7), "far", 7, item.size}}});
    return out;
  }
  void after(int64_t us, std::function<void()> event) {
    events_.emplace(now_.steady_us + us, std::move(event));
  }
  // A worker asks for the arguments of up to two tasks, as with tasks that are sent ahead.
  void ask_more(ClientId id) {
    Worker& worker = workers_.at(id);
    while (!worker.queue.empty() && worker.asked.size() + worker.ready.size() < 2) {
      Ticket ticket = next_ticket_++;
      Task task = std::move(worker.queue.front());
      worker.queue.pop_front();
      auto items = wanted(task.args);
      worker.asked[ticket] = std::move(task);
      core_->get(id, ticket, std::move(items), 60'000'000, now_, ticket);
    }
  }
  void start(ClientId id) {
    Worker& worker = workers_.at(id);
    if (worker.running || worker.ready.empty()) return;
    worker.running = true;
    auto node = worker.ready.extract(worker.ready.begin());
    auto task = std::make_shared<Task>(std::move(node.mapped()));
    Ticket ticket = node.key();
    if (!task->more) return after(task->duration_us, [=, this] { end(id, ticket, *task); });
    after(task->duration_us, [=, this] {
      core_->update_tasks(id, {}, true, now_);
      give_back(id);
      CallId call = next_ticket_++;
      gets_[call] = [=, this](bool found) {
        core_->update_tasks(id, {}, false, now_);
        if (found) core_->release(id, {task->more->id}, now_, {});
        if (!found) failed_++;
        end(id, ticket, *task);
      };
      core_->get(id, call, wanted({*task->more}), 60'000'000, now_, 0);
    });
  }
  void end(ClientId id, Ticket ticket, const Task& task) {
    std::vector<ObjectId> held;
    for (const Item& item : task.args) held.push_back(item.id);
    core_->release(id, held, now_, {});
    core_->update_tasks(id, {ticket}, {}, now_);
    workers_.at(id).running = false;
    done_++;
    ask_more(id);
    start(id);
  }
  // Tasks that wait behind a blocked one go back to their owner, who sends them again.
  void give_back(ClientId id) {
    Worker& worker = workers_.at(id);
    for (auto& [ticket, task] : worker.ready) {
      std::vector<ObjectId> held;
      for (const Item& item : task.args) held.push_back(item.id);
      core_->release(id, held, now_, {});
      core_->update_tasks(id, {ticket}, {}, now_);
      worker.queue.push_back(std::move(task));
    }
    worker.ready.clear();
    std::vector<Ticket> asked;
    for (auto& [ticket, task] : worker.asked) asked.push_back(ticket);
    for (Ticket ticket : asked) given_back_.insert(ticket);
    core_->update_tasks(id, asked, {}, now_);
  }

  void reply_create(ClientId client, CallId call, Result<std::vector<int64_t>> offsets) override {
    ASSERT_EQ(client, kFetcher);
    Item item = creating_.at(call);
    if (!offsets)
      return after(
          0, [=, this, why = offsets.error()] { core_->on_fetch_failed(item.id, why, now_); });
    after(1 + static_cast<int64_t>(rng_.below(200'000)), [=, this, at = offsets->at(0)] {
      core_->seal(kFetcher, {{item.id, at, item.size, 0, worker(1)}}, {}, now_);
      core_->release(kFetcher, {item.id}, now_, {});
    });
  }
  void reply_lease(ClientId, CallId, Result<LeasedExtent>) override { FAIL(); }
  void reply_get(ClientId client, CallId call, std::vector<GetAnswer> answers) override {
    auto found = std::count_if(answers.begin(), answers.end(),
                               [](const GetAnswer& answer) { return answer.found; });
    const bool whole = found == static_cast<ptrdiff_t>(answers.size());
    // Nothing is ever lost here: what fails has no room, as a whole.
    EXPECT_TRUE(whole || found == 0) << found;
    if (auto get = gets_.extract(call); !get.empty())
      return after(0, [get = std::move(get.mapped()), whole] { get(whole); });
    after(0, [=, this] { on_arguments(client, call, whole); });
  }
  void on_arguments(ClientId id, Ticket ticket, bool whole) {
    Worker& worker = workers_.at(id);
    auto asked = worker.asked.extract(ticket);
    if (given_back_.erase(ticket) > 0) {
      if (whole) {
        std::vector<ObjectId> held;
        for (const Item& item : asked.mapped().args) held.push_back(item.id);
        core_->release(id, held, now_, {});
      }
      worker.queue.push_back(std::move(asked.mapped()));
    } else if (whole) {
      worker.ready[ticket] = std::move(asked.mapped());
    } else {
      core_->update_tasks(id, {ticket}, {}, now_);
      failed_++;
      done_++;
    }
    if (worker.running) return start(id);
    ask_more(id);
    start(id);
  }
  void disconnect(ClientId, Error why) override { FAIL() << why.message; }
  void reserve(int64_t up_to) override {
    after(0, [=, this] { core_->on_reserved(up_to, Status(), now_); });
  }
  void fetch(const ObjectId& id, const std::vector<Source>& sources, bool) override {
    CallId call = next_ticket_++;
    creating_[call] = {id, sources.at(0).size};
    after(static_cast<int64_t>(rng_.below(50'000)), [=, this] {
      const Item& item = creating_.at(call);
      core_->create(kFetcher, call, {{item.id, item.size, worker(1)}}, true, now_);
    });
  }

  Rng rng_;
  const bool blocking_;
  Now now_{1, 0};
  std::optional<StoreCore> core_;
  std::multimap<int64_t, std::function<void()>> events_;
  std::map<ClientId, Worker> workers_;
  std::map<CallId, Item> creating_;
  std::map<CallId, std::function<void(bool)>> gets_;
  std::set<Ticket> given_back_;
  uint64_t next_ticket_ = 1;
  int done_ = 0, failed_ = 0;
};

TEST(ArgumentScenario, NoTaskFailsWhenEachFitsAlone) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    SCOPED_TRACE(seed);
    Scenario(seed, false).run();
    if (HasFatalFailure()) return;
  }
}

TEST(ArgumentScenario, EveryTaskEndsWhenTasksThatHoldArgumentsWantMore) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    SCOPED_TRACE(seed);
    Scenario(seed, true).run();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace rt::store
