// Leases for demands that are constrained to certain nodes, and the assignment of GPUs.
#include <gmock/gmock.h>

#include "core_fixture.h"

namespace rt::node {
namespace {

class ConstraintsTest : public NodeCoreTest {
 protected:
  proto::LeaseDemand affine(const std::string& node_id, bool soft, double cpus = 1) {
    auto d = demand(1, {{"CPU", cpus}});
    d.mutable_constraint()->set_node_id(node_id);
    d.mutable_constraint()->set_soft(soft);
    return d;
  }
  std::string id_of_me() const {
    Rng rng(7);
    return NodeId::random(rng).binary();
  }
  static std::string nobody() { return std::string(NodeId::kSize, 'x'); }
};

TEST_F(ConstraintsTest, AffinityToThisNodeStaysHereWhenItIsFull) {
  make(1, 1);
  start_workers(1);
  core->node_changed(peer(1, {{"CPU", 4}}, {{"CPU", 4}}));
  want(1, affine(id_of_me(), false));
  auto first = take_grant();
  auto d = affine(id_of_me(), false);
  d.set_class_id(2);
  want(1, d);
  pass(20 * kMs);
  EXPECT_EQ(sink.rest(), "");  // There is no redirect.
  give_back(first);
  take_grant();
}

TEST_F(ConstraintsTest, TheReportSaysOnWhichNodesADemandMayRun) {
  make(4, 1);
  auto d = demand(1, {{"CPU", 1}});
  auto* rule = d.mutable_constraint()->mutable_hard()->add_rules();
  rule->set_key("planet");
  rule->add_values("mars");
  want(1, d);
  auto anywhere = demand(1, {{"CPU", 1}}, 2);
  auto* wish = anywhere.mutable_constraint()->mutable_preferred()->add_rules();
  wish->set_key("planet");
  want(1, anywhere);
  pass(100 * kMs);
  proto::ResourceReport report;
  core->view().fill_report(&report);
  std::vector<std::pair<std::string, bool>> demands;
  for (const auto& reported : report.demands())
    demands.emplace_back(reported.where(), reported.infeasible());
  EXPECT_THAT(demands,
              ::testing::UnorderedElementsAre(std::pair("a node where planet is in (mars)", true),
                                              std::pair("", false)));
  sink.spawns.clear();
}

TEST_F(ConstraintsTest, AffinityToAnotherNodeGoesThere) {
  make(4, 1);
  start_workers(1);
  // The other node is full; the demand waits there, not here.
  proto::Node other = peer(1, {{"CPU", 4}}, {});
  core->node_changed(other);
  want(1, affine(other.node_id(), false));
  auto redirect = RecordingSink::take(sink.redirects);
  EXPECT_EQ(redirect.message.node().node_id(), other.node_id());
}

TEST_F(ConstraintsTest, HardAffinityToAnUnknownNodeFailsAfterAWhile) {
  make(4, 1);
  start_workers(1);
  want(1, affine(nobody(), false));
  EXPECT_EQ(sink.rest(), "");  // The event that announces the node may be on its way.
  for (int i = 0; i < 12; ++i) pass(100 * kMs);
  auto notice = RecordingSink::take(sink.notices);
  EXPECT_TRUE(notice.message.fatal());
  EXPECT_EQ(notice.message.code(), static_cast<int>(Code::kUnschedulable));
  EXPECT_NE(notice.message.message().find("doesn't exist any more"), std::string::npos);
  want(1, affine(nobody(), true));
  take_grant();
}

TEST_F(ConstraintsTest, HardAffinityToANodeThatIsTooSmallFails) {
  make(1, 1);
  start_workers(1);
  want(1, affine(id_of_me(), false, 2));
  EXPECT_EQ(RecordingSink::take(sink.notices).message.code(),
            static_cast<int>(Code::kUnschedulable));
}

TEST_F(ConstraintsTest, FullNodesFailOrSpillWhenAsked) {
  make(1, 1);
  start_workers(1);
  proto::Node other = peer(1, {{"CPU", 4}}, {{"CPU", 4}});
  core->node_changed(other);
  want(1, affine(id_of_me(), false));
  take_grant();
  auto fails = affine(id_of_me(), false);
  fails.set_class_id(2);
  fails.mutable_constraint()->set_fail_on_unavailable(true);
  want(1, fails);
  EXPECT_NE(RecordingSink::take(sink.notices).message.message().find("no room"), std::string::npos);
  fails.set_class_id(4);
  fails.set_no_spill(true);  // As if a node with an outdated view had redirected it here.
  want(2, fails);
  EXPECT_NE(RecordingSink::take(sink.notices).message.message().find("no room"), std::string::npos);
  auto spills = affine(id_of_me(), true);
  spills.set_class_id(3);
  spills.mutable_constraint()->set_spill_on_unavailable(true);
  want(1, spills);
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.node().node_id(), other.node_id());
}

TEST_F(ConstraintsTest, LabelsChooseTheNode) {
  make(4, 1);
  start_workers(1);
  auto d = demand(1);
  auto* rule = d.mutable_constraint()->mutable_hard()->add_rules();
  rule->set_key("zone");
  rule->add_values("b");
  want(1, d);
  pass(20 * kMs);
  EXPECT_EQ(sink.rest(), "");  // The demand waits until a node with the label joins.
  proto::Node other = peer(1, {{"CPU", 4}}, {{"CPU", 4}});
  (*other.mutable_labels())["zone"] = "b";
  core->node_changed(other);
  core->nodes_settled(now());
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.node().node_id(), other.node_id());
}

TEST_F(ConstraintsTest, LeasesSayWhichGpusTheyHave) {
  settings.prestart_workers = 1;
  settings.idle_worker_timeout_ms = 1'000'000;
  NodeIdentity me;
  Rng rng(7);
  me.id = NodeId::random(rng);
  me.total = resources_of({{"CPU", 4}, {"GPU", 2}});
  me.gpu_names = {"4", "6"};
  core = std::make_unique<NodeCore>(sink, settings, me);
  core->start(now());
  start_workers(1);
  auto ids = [](const RecordingSink::Grant& grant) {
    return std::vector<std::string>(grant.message.gpu_ids().begin(), grant.message.gpu_ids().end());
  };
  want(1, demand(2, {{"GPU", 0.5}}, 1));
  start_workers(2);
  auto first = take_grant(), second = take_grant();
  EXPECT_EQ(ids(first), (std::vector<std::string>{"4"}));
  EXPECT_EQ(ids(second), (std::vector<std::string>{"4"}));  // Both leases share the device.
  want(2, demand(1, {{"GPU", 1}}, 1));
  start_worker();
  auto whole = take_grant();
  EXPECT_EQ(ids(whole), (std::vector<std::string>{"6"}));
  give_back(whole);
  give_back(first);
  want(3, demand(1, {{"GPU", 0.6}}, 1));
  auto third = take_grant();
  EXPECT_EQ(ids(third), (std::vector<std::string>{"6"}));
  // 0.9 GPUs are free in sum, but on no single device.
  want(4, demand(1, {{"GPU", 0.9}}, 1));
  EXPECT_EQ(sink.rest(), "");
  give_back(second);
  EXPECT_EQ(ids(take_grant()), (std::vector<std::string>{"4"}));
  want(5, demand(1, {{"CPU", 1}}, 1));
  EXPECT_TRUE(ids(take_grant()).empty());
}

// A node at which nothing waits has no ticks.
TEST_F(NodeCoreTest, ARedirectIsForgottenAlsoWhileNothingWaits) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  take_grant();
  core->node_changed(peer(1, {{"CPU", 4}}, {{"CPU", 2}}));
  want(1, demand(2, {{"CPU", 1}}, 2));
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.count(), 2);
  time_us += 600 * kMs;
  want(1, demand(1, {{"CPU", 1}}, 3));
  ASSERT_EQ(sink.redirects.size(), 1u);
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.class_id(), 3u);
}

TEST_F(ConstraintsTest, ActorsAreToldTheirGpus) {
  settings.prestart_workers = 1;
  NodeIdentity me;
  Rng rng(7);
  me.id = NodeId::random(rng);
  me.total = resources_of({{"CPU", 1}, {"GPU", 2}});
  core = std::make_unique<NodeCore>(sink, settings, me);
  core->start(now());
  start_workers(1);
  create(actor(1, {{"GPU", 2}}, {{"GPU", 2}}));
  start_worker();
  RecordingSink::take(sink.starts);
  EXPECT_EQ(sink.last_gpus, (std::vector<std::string>{"0", "1"}));
}

}  // namespace
}  // namespace rt::node
