// TaskLine: which task starts next, and which ones go back.
#include "worker/core/task_line.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rt::worker {
namespace {

using Steps = std::vector<std::string>;

class TaskLineTest : public testing::Test, private LineSink {
 protected:
  using Task = std::shared_ptr<LineTask>;
  struct Caller : TaskChannel {};

  ~TaskLineTest() override { EXPECT_EQ(done(), Steps{}); }

  // Adds a task that is named by its number.
  Task add(Caller& caller, uint32_t seq, int unplaced = 0, bool in_store = false) {
    auto task = std::make_shared<LineTask>();
    task->caller = &caller;
    task->seq = seq;
    line_.add(task, unplaced, in_store);
    line_.check_invariants();
    return task;
  }
  // Starts everything that may start; returns the numbers in order.
  std::vector<uint32_t> start() {
    std::vector<uint32_t> started;
    while (line_.any_ready()) {
      const Task task = line_.next();
      if (!task) break;
      started.push_back(task->seq);
    }
    EXPECT_FALSE(line_.next());
    line_.check_invariants();
    return started;
  }
  // Returns what was decided since the last call.
  Steps done() {
    line_.check_invariants();
    return std::exchange(done_, {});
  }

  Caller a_, b_;
  TaskLine line_{*this};

 private:
  void note(const char* what, const LineTask& task) {
    done_.push_back(fmt::format("{} {}", what, task.seq));
  }
  void fetch_arguments(const Task& task) override { note("fetch", *task); }
  void give_up_arguments(LineTask& task) override { note("give up", task); }
  void return_task(LineTask& task) override { note("return", task); }
  void refuse_call(LineTask& task) override { note("refuse", task); }
  void tell_blocked(bool blocked) override {
    done_.push_back(blocked ? "is blocked" : "works");
    EXPECT_EQ(line_.is_blocked(), blocked);
  }

  Steps done_;
};

using Numbers = std::vector<uint32_t>;

TEST_F(TaskLineTest, TasksStartInTheOrderInWhichTheyCome) {
  EXPECT_FALSE(line_.any_ready());
  add(a_, 1);
  add(b_, 2);
  add(a_, 3);
  EXPECT_TRUE(line_.any_ready());
  EXPECT_EQ(start(), (Numbers{1, 2, 3}));
  EXPECT_TRUE(line_.empty());
  EXPECT_EQ(line_.running(), 3);
  line_.ended();
  EXPECT_EQ(line_.running(), 2);
}

TEST_F(TaskLineTest, ATaskIsPassedByOthersUntilItsArgumentsAreHere) {
  const auto first = add(a_, 1, 0, true);
  EXPECT_EQ(done(), Steps{"fetch 1"});
  EXPECT_TRUE(first->is_fetching());
  add(a_, 2);
  EXPECT_EQ(start(), Numbers{2});
  line_.arguments_fetched(*first);
  EXPECT_FALSE(first->is_fetching());
  EXPECT_EQ(start(), Numbers{1});
}

TEST_F(TaskLineTest, CallsOfOneCallerDoNotOvertakeEachOther) {
  line_.become_actor(true);
  const auto first = add(a_, 1, 1);
  add(a_, 2);
  add(b_, 3);
  EXPECT_EQ(start(), Numbers{3});
  line_.argument_placed(first, false);
  EXPECT_EQ(start(), (Numbers{1, 2}));
}

TEST_F(TaskLineTest, CallsOfAConcurrentActorOvertakeEachOther) {
  line_.become_actor(false);
  EXPECT_TRUE(line_.is_actor());
  EXPECT_FALSE(line_.is_plain_actor());
  const auto first = add(a_, 1, 1);
  add(a_, 2);
  EXPECT_EQ(start(), Numbers{2});
  line_.argument_placed(first, false);
  EXPECT_EQ(start(), Numbers{1});
}

TEST_F(TaskLineTest, NoArgumentIsFetchedBeforeThePlacesOfAllAreKnown) {
  const auto task = add(a_, 1, 2, true);
  EXPECT_EQ(done(), Steps{});
  line_.argument_placed(task, true);
  EXPECT_EQ(done(), Steps{});
  line_.argument_placed(task, false);
  EXPECT_EQ(done(), Steps{"fetch 1"});
  EXPECT_FALSE(task->is_ready());
  line_.arguments_fetched(*task);
  EXPECT_EQ(start(), Numbers{1});
}

TEST_F(TaskLineTest, CallsTakeTheirRoomInTheOrderInWhichTheyRun) {
  line_.become_actor(true);
  const auto first = add(a_, 1, 1);
  add(a_, 2, 0, true);
  add(b_, 3, 0, true);
  EXPECT_EQ(done(), Steps{"fetch 3"});
  line_.argument_placed(first, true);
  EXPECT_EQ(done(), (Steps{"fetch 1", "fetch 2"}));
}

TEST_F(TaskLineTest, ACallThatNeedsNoRoomOrGoesBackHoldsUpNoOther) {
  line_.become_actor(true);
  const auto first = add(a_, 1, 1);
  add(a_, 2, 1);
  add(a_, 3, 0, true);
  line_.argument_placed(first, false);
  EXPECT_EQ(done(), Steps{});
  EXPECT_TRUE(line_.cancel(a_, 2));
  EXPECT_EQ(done(), (Steps{"return 2", "fetch 3"}));
}

TEST_F(TaskLineTest, ATaskThatWentBackFetchesNothing) {
  const auto task = add(a_, 1, 1);
  line_.take_back(a_, 1);
  EXPECT_EQ(done(), Steps{"return 1"});
  line_.argument_placed(task, true);
  line_.arguments_fetched(*task);
  EXPECT_EQ(done(), Steps{});
}

TEST_F(TaskLineTest, AnOwnerGetsItsLastTasksBackFirst) {
  for (uint32_t seq : {1, 2}) add(a_, seq);
  add(b_, 3);
  add(a_, 4, 0, true);
  add(a_, 5);
  EXPECT_EQ(done(), Steps{"fetch 4"});
  line_.take_back(a_, 3);
  EXPECT_EQ(done(), (Steps{"return 5", "return 4", "give up 4", "return 2"}));
  EXPECT_EQ(start(), (Numbers{1, 3}));
}

TEST_F(TaskLineTest, AnActorGivesNoCallsBack) {
  line_.become_actor(true);
  add(a_, 1);
  line_.take_back(a_, 1);
  line_.thread_blocked(true);
  EXPECT_EQ(done(), Steps{"is blocked"});
  EXPECT_EQ(start(), Numbers{1});
}

TEST_F(TaskLineTest, AProcessThatWaitsGivesAllBack) {
  add(a_, 1);
  line_.next();
  add(a_, 2, 0, true);
  add(b_, 3);
  EXPECT_EQ(done(), Steps{"fetch 2"});
  EXPECT_TRUE(line_.thread_blocked(true));
  EXPECT_EQ(done(), (Steps{"is blocked", "return 3", "return 2", "give up 2"}));
  EXPECT_TRUE(line_.thread_blocked(false));
  EXPECT_EQ(done(), Steps{"works"});
}

TEST_F(TaskLineTest, AProcessWaitsAsLongAsOneOfItsThreadsDoes) {
  EXPECT_TRUE(line_.thread_blocked(true));
  EXPECT_EQ(done(), Steps{"is blocked"});
  EXPECT_FALSE(line_.thread_blocked(true));
  EXPECT_FALSE(line_.thread_blocked(false));
  EXPECT_EQ(done(), Steps{});
  EXPECT_TRUE(line_.thread_blocked(false));
  EXPECT_EQ(done(), Steps{"works"});
}

TEST_F(TaskLineTest, CallsBehindABlockedOneLeaveTheirRoom) {
  line_.become_actor(true);
  add(a_, 1);
  line_.next();
  const auto has = add(a_, 2, 0, true);
  line_.arguments_fetched(*has);
  add(a_, 3, 0, true);
  const auto failed = add(b_, 4, 0, true);
  failed->failed = true;
  EXPECT_EQ(done(), (Steps{"fetch 2", "fetch 3", "fetch 4"}));
  line_.thread_blocked(true);
  EXPECT_EQ(done(), (Steps{"is blocked", "give up 2", "give up 3"}));
  EXPECT_FALSE(has->is_ready());
  // A call that comes meanwhile takes no room either.
  add(a_, 5, 0, true);
  EXPECT_EQ(done(), Steps{});
  line_.thread_blocked(false);
  EXPECT_EQ(done(), (Steps{"works", "fetch 2", "fetch 3", "fetch 5"}));
}

TEST_F(TaskLineTest, ThreadsOfAConcurrentActorGoOnWhileOneWaits) {
  line_.become_actor(false);
  const auto call = add(a_, 1, 0, true);
  line_.thread_blocked(true);
  add(a_, 2, 0, true);
  EXPECT_EQ(done(), (Steps{"fetch 1", "is blocked", "fetch 2"}));
  line_.arguments_fetched(*call);
  EXPECT_EQ(start(), Numbers{1});
}

TEST_F(TaskLineTest, ACancelledTaskGoesBack) {
  add(a_, 1);
  add(b_, 1, 0, true);
  EXPECT_FALSE(line_.cancel(a_, 2));
  EXPECT_EQ(done(), Steps{"fetch 1"});
  EXPECT_TRUE(line_.cancel(b_, 1));
  EXPECT_EQ(done(), (Steps{"return 1", "give up 1"}));
  EXPECT_FALSE(line_.cancel(b_, 1));
  line_.next();
  // It runs.
  EXPECT_FALSE(line_.cancel(a_, 1));
}

TEST_F(TaskLineTest, NobodyWaitsForTheTasksOfAClosedConnection) {
  add(a_, 1);
  add(b_, 2);
  add(a_, 3, 0, true);
  EXPECT_EQ(done(), Steps{"fetch 3"});
  line_.caller_gone(a_);
  EXPECT_EQ(done(), Steps{"give up 3"});
  EXPECT_EQ(start(), Numbers{2});
}

TEST_F(TaskLineTest, AnActorThatHasLeftRefusesItsCalls) {
  line_.become_actor(true);
  add(a_, 1);
  line_.next();
  add(a_, 2);
  add(b_, 3, 0, true);
  EXPECT_EQ(done(), Steps{"fetch 3"});
  line_.refuse_calls();
  EXPECT_TRUE(line_.refuses());
  EXPECT_EQ(done(), (Steps{"refuse 2", "refuse 3", "give up 3"}));
  add(a_, 4, 0, true);
  EXPECT_EQ(done(), Steps{"refuse 4"});
  EXPECT_TRUE(line_.empty());
  EXPECT_EQ(line_.running(), 1);
}

TEST_F(TaskLineTest, TheCreationOfTheActorComesFromNobody) {
  line_.become_actor(true);
  auto creation = std::make_shared<LineTask>();
  line_.add(creation, 0, false);
  line_.caller_gone(a_);
  EXPECT_EQ(line_.next(), creation);
}

}  // namespace
}  // namespace rt::worker
