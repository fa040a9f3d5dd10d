// Tests what an owner knows of placement groups, and where it asks for leases in them.
#include "worker/core/group_view.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace rt::worker {
namespace {

ResourceSet cpus(double n) { return ResourceSet::from_map({{"CPU", n}}).value(); }

class GroupViewTest : public ::testing::Test {
 protected:
  GroupViewTest() { view.set_here(here); }
  // News of a group with a bundle for each node, of `cpu` CPUs; nil: no node has it.
  proto::GroupInfo news(int64_t version, proto::GroupState state,
                        const std::vector<NodeId>& nodes = {}, int cpu = 1) const {
    proto::GroupInfo info;
    info.mutable_spec()->set_group_id(id.binary());
    info.set_version(version);
    info.set_state(state);
    for (const NodeId& node : nodes) {
      cpus(cpu).to_proto(info.mutable_spec()->add_bundles()->mutable_resources());
      info.add_bundle_nodes(node.is_nil() ? "" : node.binary());
      info.add_bundle_epochs(node.is_nil() ? 0 : version);
    }
    return info;
  }
  std::vector<NodeId> nodes_for(int bundle_index, double cpu = 1) const {
    std::vector<NodeId> nodes;
    for (const GroupTarget& target : view.targets(id, bundle_index, cpus(cpu)))
      nodes.push_back(target.node);
    return nodes;
  }

  Rng rng{1};
  const NodeId here = NodeId::random(rng), a = NodeId::random(rng), b = NodeId::random(rng);
  const NodeId local = NodeId::nil();
  const GroupId id = make_group_id(job_id_from_int(3), rng);
  GroupView view;
};

TEST_F(GroupViewTest, AGroupIsAskedForOnce) {
  EXPECT_TRUE(view.watch(id));
  EXPECT_FALSE(view.watch(id));
  EXPECT_EQ(view.watched(), std::vector<GroupId>{id});
  EXPECT_FALSE(view.heard_of(id));
  EXPECT_FALSE(view.created(id));
  EXPECT_FALSE(view.removed(id));
}

TEST_F(GroupViewTest, NewsOfAGroupThatNobodyAskedForAreIgnored) {
  EXPECT_FALSE(view.update(news(1, proto::GROUP_CREATED, {a})));
  EXPECT_FALSE(view.watches(id));
  proto::GroupInfo malformed;
  malformed.mutable_spec()->set_group_id("short");
  EXPECT_FALSE(view.update(malformed));
}

TEST_F(GroupViewTest, OldNewsAreIgnored) {
  view.watch(id);
  EXPECT_TRUE(view.update(news(2, proto::GROUP_CREATED, {a})));
  EXPECT_TRUE(view.created(id));
  EXPECT_FALSE(view.update(news(1, proto::GROUP_PENDING)));
  EXPECT_FALSE(view.update(news(2, proto::GROUP_RESCHEDULING)));
  EXPECT_TRUE(view.created(id));
}

TEST_F(GroupViewTest, NewsThatMoveNothingAreNoChange) {
  view.watch(id);
  EXPECT_TRUE(view.update(news(1, proto::GROUP_PENDING)));
  proto::GroupInfo again = news(2, proto::GROUP_PENDING);
  again.set_why("no node has room");
  EXPECT_FALSE(view.update(again));
  EXPECT_EQ(view.why(id), "no node has room");
}

TEST_F(GroupViewTest, ABundleIsAskedForAtItsNode) {
  view.watch(id);
  view.update(news(1, proto::GROUP_CREATED, {a, here, b}));
  EXPECT_EQ(nodes_for(0), std::vector<NodeId>{a});
  EXPECT_EQ(nodes_for(1), std::vector<NodeId>{local});
  EXPECT_EQ(nodes_for(2), std::vector<NodeId>{b});
  EXPECT_EQ(nodes_for(3), std::vector<NodeId>{local});  // There is no such bundle.
}

TEST_F(GroupViewTest, AnyBundleIsAskedForAtEveryNodeThatHoldsALargeEnoughOne) {
  view.watch(id);
  proto::GroupInfo info = news(1, proto::GROUP_CREATED, {a, b, b, here});
  cpus(4).to_proto(info.mutable_spec()->mutable_bundles(1)->mutable_resources());
  cpus(4).to_proto(info.mutable_spec()->mutable_bundles(3)->mutable_resources());
  view.update(info);
  std::vector<NodeId> all = nodes_for(-1);
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(std::set<NodeId>(all.begin(), all.end()), (std::set<NodeId>{a, b, local}));
  std::vector<NodeId> large = nodes_for(-1, 2);
  EXPECT_EQ(std::set<NodeId>(large.begin(), large.end()), (std::set<NodeId>{b, local}));
  EXPECT_EQ(nodes_for(-1, 8), std::vector<NodeId>{local});  // It fits nowhere, and is seen here.
}

TEST_F(GroupViewTest, NoMoreLeasesAreAskedForThanBundlesCanHold) {
  view.watch(id);
  view.update(news(1, proto::GROUP_CREATED, {a, a}, 4));
  EXPECT_EQ(view.targets(id, -1, cpus(2)).at(0).most, 4);
  EXPECT_EQ(view.targets(id, -1, cpus(3)).at(0).most, 2);
  EXPECT_EQ(view.targets(id, 1, cpus(2)).at(0).most, 2);
  EXPECT_EQ(view.targets(id, 1, cpus(9)).at(0).most, 1);  // It waits at the node of its bundle.
  EXPECT_EQ(view.targets(id, -1, ResourceSet()).at(0).most, std::numeric_limits<int>::max());
}

TEST_F(GroupViewTest, ABundleIsForUseOnceTheHeadHasNamedItsNode) {
  view.watch(id);
  EXPECT_EQ(view.targets(id, 0, cpus(1)).at(0).epoch, 0);
  view.update(news(1, proto::GROUP_PREPARED));
  EXPECT_EQ(view.targets(id, 0, cpus(1)).at(0).epoch, 0);
  view.update(news(2, proto::GROUP_CREATED, {here, a}));
  EXPECT_GT(view.targets(id, 0, cpus(1)).at(0).epoch, 0);
  EXPECT_GT(view.targets(id, -1, cpus(1)).at(0).epoch, 0);
  view.update(news(3, proto::GROUP_RESCHEDULING, {NodeId::nil(), a}));
  EXPECT_EQ(view.targets(id, 0, cpus(1)).at(0).epoch, 0);
  EXPECT_GT(view.targets(id, -1, cpus(1)).at(0).epoch, 0);
}

TEST_F(GroupViewTest, WithoutANodeTheLocalNodeManagerIsAsked) {
  EXPECT_EQ(nodes_for(0), std::vector<NodeId>{local});  // The group is not known.
  view.watch(id);
  EXPECT_EQ(nodes_for(-1), std::vector<NodeId>{local});
  view.update(news(1, proto::GROUP_PENDING));
  EXPECT_EQ(nodes_for(0), std::vector<NodeId>{local});
  view.update(news(2, proto::GROUP_CREATED, {a, b}));
  view.update(news(3, proto::GROUP_RESCHEDULING, {NodeId::nil(), b}));
  EXPECT_EQ(nodes_for(0), std::vector<NodeId>{local});
  EXPECT_EQ(nodes_for(1), std::vector<NodeId>{b});
  EXPECT_EQ(nodes_for(-1), std::vector<NodeId>{b});
  view.update(news(4, proto::GROUP_REMOVED, {a, b}));
  EXPECT_EQ(nodes_for(1), std::vector<NodeId>{local});
}

TEST_F(GroupViewTest, ARemovedGroupNeverComesBackAndIsForgottenOnceUnused) {
  view.watch(id);
  view.use(id);
  view.update(news(1, proto::GROUP_CREATED, {a}));
  view.forget_if_unused(id);
  EXPECT_TRUE(view.watches(id));
  EXPECT_TRUE(view.update(news(2, proto::GROUP_REMOVED)));
  EXPECT_TRUE(view.removed(id));
  EXPECT_FALSE(view.update(news(3, proto::GROUP_CREATED, {a})));
  view.forget_if_unused(id);
  EXPECT_TRUE(view.removed(id));  // Something uses it still.
  view.unuse(id);
  view.forget_if_unused(id);
  EXPECT_FALSE(view.watches(id));
  EXPECT_TRUE(view.empty());
}

TEST_F(GroupViewTest, AGroupThatTheHeadDoesNotKnowCountsAsRemovedUntilItTellsOfIt) {
  view.watch(id);
  EXPECT_TRUE(view.lost(id, "the head does not know it"));
  EXPECT_FALSE(view.lost(id, "again"));
  EXPECT_TRUE(view.removed(id));
  EXPECT_TRUE(view.heard_of(id));
  EXPECT_EQ(view.why(id), "the head does not know it");
  EXPECT_TRUE(view.update(news(1, proto::GROUP_CREATED, {a})));
  EXPECT_TRUE(view.created(id));
  view.lost(id, "the head does not know it");
  EXPECT_FALSE(view.created(id));
  EXPECT_FALSE(view.update(news(1, proto::GROUP_CREATED, {a})));  // This was known before.
  EXPECT_TRUE(view.removed(id));
}

TEST_F(GroupViewTest, SaysWhatATaskWaitsFor) {
  const std::string name = "placement group " + id.hex();
  EXPECT_EQ(view.waits_for(id, 0), name + ", of which the head has not said anything yet");
  view.watch(id);
  proto::GroupInfo pending = news(1, proto::GROUP_PENDING);
  pending.set_why("bundle 0 fits on no node");
  view.update(pending);
  EXPECT_EQ(view.waits_for(id, 0), name + ", which is not created yet: bundle 0 fits on no node");
  view.update(news(2, proto::GROUP_CREATED, {a, b}));
  EXPECT_EQ(view.waits_for(id, 1), "room in bundle 1 of " + name);
  EXPECT_EQ(view.waits_for(id, -1), "room in any bundle of " + name);
  view.update(news(3, proto::GROUP_RESCHEDULING, {NodeId::nil(), b}));
  EXPECT_EQ(view.waits_for(id, 0), "bundle 0 of " + name + ", which was lost with its node");
  EXPECT_EQ(view.waits_for(id, 1), "room in bundle 1 of " + name);
  view.update(news(4, proto::GROUP_REMOVED));
  EXPECT_EQ(view.waits_for(id, 1), name + ", which was removed, so that it never runs");
}

}  // namespace
}  // namespace rt::worker
