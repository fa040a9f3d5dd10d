// Which nodes a NodeConstraint (labels, affinity, fallbacks) admits, and in which order.
#include "common/scheduling/constraint.h"

#include <gtest/gtest.h>

namespace rt::scheduling {
namespace {

using Verdict = AllowedNodes::Verdict;

NodeId lettered_node(char letter) {
  return NodeId::from_binary(std::string(NodeId::kSize, letter));
}

std::vector<int> in(const NodeMask& nodes) {
  std::vector<int> found;
  for (NodeSlot slot = nodes.first(); slot != kNoNode; slot = nodes.first(slot + 1))
    found.push_back(slot);
  return found;
}

// Three nodes in slots 0 to 2: a in eu, b in us with a gpu label and 4 CPUs, c without labels.
struct ThreeNodes {
  Labels a, b, c;
  Nodes nodes;
  ThreeNodes() {
    a["region"] = "eu";
    b["region"] = "us";
    b["gpu"] = "yes";
    put();
  }
  void put() {
    nodes.put(lettered_node('a'), a, ResourceSet::from_map({{"CPU", 1}}).value());
    nodes.put(lettered_node('b'), b, ResourceSet::from_map({{"CPU", 4}}).value());
    nodes.put(lettered_node('c'), c, ResourceSet::from_map({{"CPU", 1}}).value());
  }
  struct Answer {
    std::vector<int> nodes, preferred;
    Verdict verdict;
  };
  Answer of(const proto::NodeConstraint& constraint, double cpus = 1) const {
    AllowedNodes allowed =
        allowed_nodes(constraint, ResourceSet::from_map({{"CPU", cpus}}).value(), nodes);
    return {in(allowed.nodes), in(allowed.preferred), allowed.verdict};
  }
};

void add(proto::LabelSelector* selector, const char* key, proto::LabelRule::Op op,
         std::initializer_list<const char*> values = {}) {
  proto::LabelRule* rule = selector->add_rules();
  rule->set_key(key);
  rule->set_op(op);
  for (const char* value : values) rule->add_values(value);
}
proto::NodeConstraint hard(const char* key, proto::LabelRule::Op op,
                           std::initializer_list<const char*> values = {}) {
  proto::NodeConstraint constraint;
  add(constraint.mutable_hard(), key, op, values);
  return constraint;
}

TEST(NodeConstraint, OperatorsOnLabels) {
  ThreeNodes nodes;
  EXPECT_EQ(nodes.of(hard("region", proto::LabelRule::IN, {"eu", "asia"})).nodes,
            (std::vector<int>{0}));
  EXPECT_EQ(nodes.of(hard("region", proto::LabelRule::NOT_IN, {"eu"})).nodes,
            (std::vector<int>{1, 2}));  // Node c matches too: it has no such label.
  EXPECT_EQ(nodes.of(hard("gpu", proto::LabelRule::EXISTS)).nodes, (std::vector<int>{1}));
  EXPECT_EQ(nodes.of(hard("gpu", proto::LabelRule::DOES_NOT_EXIST)).nodes,
            (std::vector<int>{0, 2}));
  auto both = hard("region", proto::LabelRule::EXISTS);
  add(both.mutable_hard(), "gpu", proto::LabelRule::DOES_NOT_EXIST);
  EXPECT_EQ(nodes.of(both).nodes, (std::vector<int>{0}));
}

TEST(NodeConstraint, NobodyMatchesOrIsLargeEnough) {
  ThreeNodes nodes;
  EXPECT_EQ(nodes.of(hard("region", proto::LabelRule::IN, {"mars"})).verdict, Verdict::kNoneYet);
  EXPECT_EQ(nodes.of(hard("region", proto::LabelRule::IN, {"eu"}), 2).verdict, Verdict::kNoneYet);
}

TEST(NodeConstraint, PreferredNodesComeFirst) {
  ThreeNodes nodes;
  proto::NodeConstraint constraint;
  add(constraint.mutable_preferred(), "gpu", proto::LabelRule::EXISTS);
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(nodes.of(constraint).preferred, (std::vector<int>{1}));
}

TEST(NodeConstraint, FallbacksInTheirOrderWhileNobodyMatches) {
  ThreeNodes nodes;
  auto constraint = hard("region", proto::LabelRule::IN, {"mars"});
  add(constraint.add_fallbacks(), "region", proto::LabelRule::IN, {"venus"});
  add(constraint.add_fallbacks(), "region", proto::LabelRule::IN, {"us"});
  add(constraint.add_fallbacks(), "region", proto::LabelRule::IN, {"eu"});
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{1}));
  nodes.c["region"] = "mars";
  nodes.put();
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{2}));
}

TEST(NodeConstraint, AffinityToOneNode) {
  ThreeNodes nodes;
  proto::NodeConstraint constraint;
  constraint.set_node_id(lettered_node('b').binary());
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{1}));
  EXPECT_EQ(nodes.of(constraint, 5).verdict, Verdict::kTooSmall);
  constraint.set_node_id(lettered_node('g').binary());
  EXPECT_EQ(nodes.of(constraint).verdict, Verdict::kGone);
  constraint.set_soft(true);
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{0, 1, 2}));
  constraint.set_node_id(lettered_node('c').binary());
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{2}));
  constraint.set_spill_on_unavailable(true);
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(nodes.of(constraint).preferred, (std::vector<int>{2}));
}

}  // namespace
}  // namespace rt::scheduling
