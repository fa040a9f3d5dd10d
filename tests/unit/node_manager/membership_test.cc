// Membership, with nodes that join, change, drain, have problems and leave.
#include "daemons/node_manager/core/membership.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace rt::node {
namespace {

class MembershipTest : public testing::Test {
 protected:
  static NodeId id_of(uint64_t seed) {
    Rng rng(seed);
    return NodeId::random(rng);
  }
  static proto::Node node(uint64_t seed) {
    proto::Node node;
    node.set_node_id(id_of(seed).binary());
    node.set_ip("10.0.0." + std::to_string(seed));
    node.set_alive(true);
    return node;
  }
  static proto::Node dead(uint64_t seed) {
    proto::Node gone = node(seed);
    gone.set_alive(false);
    gone.set_death_message("its host is gone");
    return gone;
  }
  static Membership::NodeList list(std::initializer_list<proto::Node> nodes) {
    return {nodes.begin(), nodes.end()};
  }
  Membership::Turn changed(std::initializer_list<proto::Node> nodes) {
    return membership.changed(list(nodes));
  }

  Membership membership{id_of(1)};
};

TEST_F(MembershipTest, ProcessesHearOfNodesThatJoinAndLeave) {
  EXPECT_EQ(changed({node(1), node(2)}).news.nodes_size(), 2);
  EXPECT_EQ(membership.nodes().size(), 2u);
  proto::Node busier = node(2);
  busier.set_incarnation(7);
  EXPECT_EQ(changed({busier}).news.nodes_size(), 0) << "what is free there concerns nobody else";
  EXPECT_EQ(membership.nodes().at(NodeId::from_binary(busier.node_id())).incarnation(), 7);
  const Membership::Turn turn = changed({dead(2)});
  ASSERT_EQ(turn.news.nodes_size(), 1);
  EXPECT_FALSE(turn.news.nodes(0).alive());
  EXPECT_TRUE(turn.lines.empty()) << "it had no problem that drivers were told of";
  EXPECT_EQ(membership.nodes().size(), 1u);
  EXPECT_EQ(changed({dead(2)}).news.nodes_size(), 0);
}

TEST_F(MembershipTest, ProcessesHearThatANodeDrains) {
  changed({node(2)});
  proto::Node draining = node(2);
  draining.mutable_drain()->set_message("its machine is taken away");
  EXPECT_EQ(changed({draining}).news.nodes_size(), 1);
  EXPECT_EQ(changed({draining}).news.nodes_size(), 0);
}

TEST_F(MembershipTest, DriversHearOfProblemsOfOtherNodes) {
  proto::Node hangs = node(2), i_hang = node(1);
  hangs.set_problem("its object store has not answered");
  i_hang.set_problem("its object store has not answered");
  const Membership::Turn turn = changed({hangs, i_hang});
  ASSERT_EQ(turn.lines.size(), 1u) << "this node tells its own drivers itself";
  EXPECT_NE(turn.lines[0].find("10.0.0.2) does not work as it should"), std::string::npos);
  EXPECT_EQ(membership.problems(), turn.lines) << "drivers that join hear of it, too";
  EXPECT_TRUE(changed({hangs}).lines.empty());
  const std::vector<std::string> again = changed({node(2)}).lines;
  ASSERT_EQ(again.size(), 1u);
  EXPECT_NE(again[0].find("works again"), std::string::npos);
  EXPECT_TRUE(membership.problems().empty());
}

TEST_F(MembershipTest, ANodeThatWasDeclaredDeadEnds) {
  changed({node(1)});
  const Membership::Turn turn = changed({node(2), dead(1)});
  ASSERT_TRUE(turn.dead);
  EXPECT_EQ(*turn.dead, "its host is gone");
  EXPECT_EQ(turn.news.nodes_size(), 0);
}

TEST_F(MembershipTest, NodesThatANewHeadDoesNotKnowCountAsDead) {
  changed({node(1), node(2), node(3)});
  const Membership::NodeList changes = membership.since_registration(list({node(3), node(4)}));
  ASSERT_EQ(changes.size(), 3) << "this node is alive in any case";
  EXPECT_EQ(changes[2].node_id(), id_of(2).binary());
  EXPECT_FALSE(changes[2].alive());
  EXPECT_EQ(membership.changed(changes).news.nodes_size(), 2);
}

}  // namespace
}  // namespace rt::node
