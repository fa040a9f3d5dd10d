// Groups that ask for GPUs or parts of them: the head knows how much of the GPUs of a node is free,
// but not in which devices, and learns from refusals.
#include <gtest/gtest.h>

#include "tests/unit/head/group_fixture.h"

namespace rt::head {
namespace {

class GroupGpusTest : public GroupTest {
 protected:
  void TearDown() override {
    sink.returns.clear();
    drop_pushes();
    GroupTest::TearDown();
  }
  // Nodes 1 and 2 have so many GPUs free, and each agrees to so many bundles. Returns how many
  // attempts the group took, or 0 when it was not placed.
  int attempts(const GroupId& id, std::pair<double, double> free, std::pair<int, int> most) {
    for (int attempt = 1; attempt <= 20; ++attempt) {
      report(1, {{"GPU", free.first}});
      report(2, {{"GPU", free.second}});
      advance_alive(20 * options.settings.placement_settle_ms, {1, 2});
      while (!sink.prepares.empty()) {
        const auto prepare = take(sink.prepares);
        const int bundles = prepare.request.bundles_size();
        if (bundles <= (prepare.node.node == node_id(1) ? most.first : most.second)) {
          reserved(prepare);
        } else {
          refused(prepare, "node has not enough free of single GPU devices");
        }
      }
      if (group_state(id) == proto::GROUP_CREATED) return attempt;
    }
    return 0;
  }
};

TEST_F(GroupGpusTest, ARefusedChoiceIsNotMadeAgainWhileThereIsAnother) {
  add_node(1, {{"GPU", 3}});
  add_node(2, {{"GPU", 1}});
  report(1, {{"GPU", 2.1}});  // 0.7 of each device.
  JobId job = add_job();
  auto request = group_request(job, std::vector<Amounts>(4, {{"GPU", 0.5}}));
  add_group(request);
  EXPECT_EQ(sink.prepares.at(0).request.bundles_size(), 4);
  EXPECT_EQ(attempts(id_of(request), {2.1, 1}, {3, 2}), 2);
}

TEST_F(GroupGpusTest, AWholeDeviceIsLookedForElsewhereToo) {
  add_node(1, {{"GPU", 4}});
  add_node(2, {{"GPU", 2}});
  report(1, {{"GPU", 1}});  // 0.25 of each device.
  JobId job = add_job();
  auto request = group_request(job, {{{"GPU", 1}}});
  add_group(request);
  EXPECT_EQ(sink.prepares.at(0).node.node, node_id(1));
  EXPECT_EQ(attempts(id_of(request), {1, 2}, {0, 1}), 2);
}

TEST_F(GroupGpusTest, ANodeThatRefusedIsAskedAgainWhenNoOtherIsLeft) {
  add_node(1, {{"GPU", 2}});
  add_node(2, {{"GPU", 0.5}});
  report(1, {{"GPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"GPU", 1}}});
  add_group(request);
  EXPECT_EQ(attempts(id_of(request), {1, 0.5}, {0, 0}), 0);
  EXPECT_EQ(attempts(id_of(request), {1, 0.5}, {1, 0}), 1);
}

TEST_F(GroupGpusTest, TheDriverIsToldOnceOfPartsThatFitNowhere) {
  add_node(1, {{"GPU", 2}});
  add_node(2, {{"GPU", 1}});
  JobId job = add_job();
  proto::SubscribeRequest subscribe;
  subscribe.set_logs_of_job(job.binary());
  ASSERT_TRUE(core->subscribe(kOwner, subscribe, now));
  auto request = group_request(job, std::vector<Amounts>(4, {{"GPU", 0.6}}));
  add_group(request);
  EXPECT_TRUE(sink.prepares.empty());
  EXPECT_TRUE(shown(id_of(request)).infeasible());
  drop_pushes();
  advance_alive(3 * options.settings.infeasible_warning_after_ms, {1, 2});
  EXPECT_EQ(notices().size(), 1u);
}

TEST_F(GroupGpusTest, NoticesAreSafeForTerminals) {
  add_node(1, {{"CPU", 1}});
  JobId job = add_job();
  proto::SubscribeRequest subscribe;
  subscribe.set_logs_of_job(job.binary());
  ASSERT_TRUE(core->subscribe(kOwner, subscribe, now));
  add_group(group_request(job, {{{"re\x1b[31ms\ad\n", 1}}}, proto::GroupSpec::PACK,
                          "na\x1b]0;x\a\nme" + std::string(1'000, 'x')));
  drop_pushes();
  advance_alive(options.settings.infeasible_warning_after_ms + 600, {1});
  const std::vector<std::string> told = notices();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].find_first_of("\x1b\a\n"), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("The placement group 'na\\x1b]0;x\\x07 me"), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("lacks 1 re\\x1b[31ms\\x07d "), std::string::npos) << told[0];
  EXPECT_LT(told[0].size(), 900u);
}

}  // namespace
}  // namespace rt::head
