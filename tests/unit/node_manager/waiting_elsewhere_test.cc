// Demands that a node cannot serve before an actor or a group ends, and that wait at another one.
#include "core_fixture.h"

namespace rt::node {
namespace {

class WaitingElsewhereTest : public NodeCoreTest {
 protected:
  // The only CPU of this node belongs to an actor.
  void make_held_by_an_actor() {
    make(1, 1);
    start_worker();
    auto request = actor(1, {{"CPU", 1}}, {{"CPU", 1}});
    create(request);
    RecordingSink::take(sink.starts);
    constructed(request);
    RecordingSink::take(sink.created);
    sink.spawns.clear();
  }
  // Another node without free CPUs, of which actors and groups hold `held`.
  proto::Node full_peer(double cpus, double held) {
    proto::Node node = peer(1, {{"CPU", cpus}}, {});
    resources_of({{"CPU", held}}).to_proto(node.mutable_held());
    return node;
  }
  // Until a demand is starved, and has looked for another node after that.
  void starve() { pass(10 * settings.lease_revoke_after_ms * kMs); }
};

TEST_F(WaitingElsewhereTest, AStarvedDemandWaitsWhereTasksMakeRoom) {
  make_held_by_an_actor();
  core->node_changed(full_peer(2, 1));
  want(1, demand(1));
  pass(500 * kMs);
  EXPECT_EQ(sink.rest(), "");  // The actor may end soon.
  starve();
  auto redirect = RecordingSink::take(sink.redirects);
  EXPECT_EQ(redirect.message.count(), 1);
  EXPECT_EQ(redirect.owner, 1u);
}

TEST_F(WaitingElsewhereTest, ADemandStaysWhereNoOtherNodeHasMoreForTasks) {
  make_held_by_an_actor();
  core->node_changed(full_peer(2, 1.5));
  want(1, demand(1));
  starve();
  EXPECT_EQ(sink.rest(), "");
}

TEST_F(WaitingElsewhereTest, ADemandStaysWhereTasksHaveTheRoom) {
  make(1, 1);
  start_workers(1);
  want(1, demand(1));
  take_grant();
  core->node_changed(full_peer(2, 0));
  want(2, demand(1));
  starve();
  EXPECT_EQ(sink.revokes.size(), 1u);
  sink.revokes.clear();
  EXPECT_EQ(sink.rest(), "");
}

TEST_F(WaitingElsewhereTest, ADemandThatWasSentHereStays) {
  make_held_by_an_actor();
  core->node_changed(full_peer(2, 0));
  auto d = demand(1);
  d.set_no_spill(true);
  want(1, d);
  starve();
  EXPECT_EQ(sink.rest(), "");
}

TEST_F(WaitingElsewhereTest, ADemandWithAnAffinityForThisNodeStays) {
  make_held_by_an_actor();
  core->node_changed(full_peer(2, 0));
  auto d = demand(1);
  Rng rng(7);  // The id that make_with() gives to this node is its first.
  d.mutable_constraint()->set_node_id(NodeId::random(rng).binary());
  want(1, d);
  starve();
  EXPECT_EQ(sink.rest(), "");
}

TEST_F(WaitingElsewhereTest, ADemandWithAnyLabelsWaitsWhereTasksMakeRoom) {
  make_held_by_an_actor();
  core->node_changed(full_peer(2, 0));
  auto d = demand(1);
  d.mutable_constraint()->mutable_preferred()->add_rules()->set_key("region");
  want(1, d);
  starve();
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.count(), 1);
}

TEST_F(WaitingElsewhereTest, WhatOnlyOtherNodesCanRunWaitsWhereTasksMakeRoom) {
  make(1);
  core->node_changed(full_peer(2, 2));
  proto::Node other = peer(2, {{"CPU", 2}}, {});
  core->node_changed(other);
  want(1, demand(1, {{"CPU", 2}}));
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.node().node_id(), other.node_id());
}

}  // namespace
}  // namespace rt::node
