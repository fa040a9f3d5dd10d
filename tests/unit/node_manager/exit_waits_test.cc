// ExitWaits, with workers that end, go on, or cannot make up their minds.
#include "daemons/node_manager/core/exit_waits.h"

#include "core_fixture.h"

namespace rt::node {
namespace {

class ExitWaitsTest : public NodeCoreTest {
 protected:
  ExitWaitsTest() {
    make(1);
    waits = std::make_unique<ExitWaits>(*core, "10.0.0.1",
                                        [this](int pid) { return ending.contains(pid); });
    want(1, demand(1));
    worker = start_worker();
    grant = take_grant();
  }
  void ask() {
    waits->ask(worker, [this](const auto& reply) { answers.push_back(reply); }, now());
  }
  void pass_to(int64_t us) {
    time_us = us;
    waits->tick(now());
  }
  void reap_worker() {
    reap(worker, 9);
    RecordingSink::take(sink.deaths);
    waits->ended(worker);
  }

  std::unique_ptr<ExitWaits> waits;
  WorkerId worker;
  RecordingSink::Grant grant;
  std::set<int> ending;  // processes that the operating system shows to be ending
  std::vector<proto::WorkerExitReply> answers;
};

TEST_F(ExitWaitsTest, AnEndThatIsKnownIsToldAtOnce) {
  reap_worker();
  ask();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].exited());
  EXPECT_EQ(answers[0].info().signal(), 9);
  EXPECT_EQ(waits->next_tick_us(), -1);
}

TEST_F(ExitWaitsTest, NothingIsSaidOfAStranger) {
  Rng rng(99);
  worker = WorkerId::random(rng);
  ask();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0].exited());
  EXPECT_EQ(answers[0].info().message(), "");
}

TEST_F(ExitWaitsTest, AllWhoAskedHearOfTheEnd) {
  ask();
  ask();
  EXPECT_TRUE(answers.empty());
  reap_worker();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(answers[0].exited() && answers[1].exited());
  EXPECT_EQ(waits->next_tick_us(), -1);
  pass_to(time_us + ExitWaits::kGiveUpUs);
  EXPECT_EQ(answers.size(), 2u) << "each is answered once";
}

TEST_F(ExitWaitsTest, AWorkerThatGoesOnIsToldOfAsSoonAsThatIsCertain) {
  ask();
  const int64_t due_us = time_us + ExitWaits::kStillAliveUs;
  EXPECT_EQ(waits->next_tick_us(), due_us);
  pass_to(due_us - 1);
  EXPECT_TRUE(answers.empty());
  pass_to(due_us);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0].exited());
  EXPECT_NE(answers[0].info().message().find("goes on"), std::string::npos);
  EXPECT_EQ(waits->next_tick_us(), -1);
}

TEST_F(ExitWaitsTest, AnEndingWorkerIsWaitedForAndThenGivenUp) {
  ask();
  const int64_t asked_us = time_us;
  ending.insert(core->view().worker(worker)->pid);
  pass_to(asked_us + ExitWaits::kStillAliveUs);
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(waits->next_tick_us(), asked_us + ExitWaits::kGiveUpUs);
  pass_to(asked_us + ExitWaits::kGiveUpUs);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0].exited());
  EXPECT_EQ(answers[0].info().message(), "") << "nobody knows";
}

TEST_F(ExitWaitsTest, AnEndThatIsSeenLateStillAnswers) {
  ask();
  ending.insert(core->view().worker(worker)->pid);
  pass_to(time_us + ExitWaits::kStillAliveUs);
  reap_worker();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].exited());
  EXPECT_EQ(waits->next_tick_us(), -1);
}

}  // namespace
}  // namespace rt::node
