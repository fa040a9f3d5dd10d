// Which nodes a NodeConstraint (labels, affinity, fallbacks) admits, and in which order.
#include "common/resources/node_constraint.h"

#include <gtest/gtest.h>

namespace rt {
namespace {

using Verdict = AllowedNodes::Verdict;

// Three nodes: a in eu, b in us with a gpu label and 4 CPUs, c without labels.
struct Nodes {
  ResourceSet small = ResourceSet::from_map({{"CPU", 1}}).value(),
              large = ResourceSet::from_map({{"CPU", 4}}).value();
  Labels a, b, c;
  std::vector<NodeFacts> facts;
  Nodes() {
    a["region"] = "eu";
    b["region"] = "us";
    b["gpu"] = "yes";
    facts = {{"a", &a, &small}, {"b", &b, &large}, {"c", &c, &small}};
  }
  AllowedNodes of(const proto::NodeConstraint& constraint, double cpus = 1) const {
    return allowed_nodes(constraint, ResourceSet::from_map({{"CPU", cpus}}).value(), facts);
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
  Nodes nodes;
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
  Nodes nodes;
  EXPECT_EQ(nodes.of(hard("region", proto::LabelRule::IN, {"mars"})).verdict, Verdict::kNoneYet);
  EXPECT_EQ(nodes.of(hard("region", proto::LabelRule::IN, {"eu"}), 2).verdict, Verdict::kNoneYet);
}

TEST(NodeConstraint, PreferredNodesComeFirst) {
  Nodes nodes;
  proto::NodeConstraint constraint;
  add(constraint.mutable_preferred(), "gpu", proto::LabelRule::EXISTS);
  AllowedNodes allowed = nodes.of(constraint);
  EXPECT_EQ(allowed.nodes, (std::vector<int>{1, 0, 2}));
  EXPECT_EQ(allowed.preferred, 1u);
}

TEST(NodeConstraint, FallbacksInTheirOrderWhileNobodyMatches) {
  Nodes nodes;
  auto constraint = hard("region", proto::LabelRule::IN, {"mars"});
  add(constraint.add_fallbacks(), "region", proto::LabelRule::IN, {"venus"});
  add(constraint.add_fallbacks(), "region", proto::LabelRule::IN, {"us"});
  add(constraint.add_fallbacks(), "region", proto::LabelRule::IN, {"eu"});
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{1}));
  nodes.c["region"] = "mars";
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{2}));
}

TEST(NodeConstraint, AffinityToOneNode) {
  Nodes nodes;
  proto::NodeConstraint constraint;
  constraint.set_node_id("b");
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{1}));
  EXPECT_EQ(nodes.of(constraint, 5).verdict, Verdict::kTooSmall);
  constraint.set_node_id("gone");
  EXPECT_EQ(nodes.of(constraint).verdict, Verdict::kGone);
  constraint.set_soft(true);
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{0, 1, 2}));
  constraint.set_node_id("c");
  EXPECT_EQ(nodes.of(constraint).nodes, (std::vector<int>{2}));
  constraint.set_spill_on_unavailable(true);
  AllowedNodes allowed = nodes.of(constraint);
  EXPECT_EQ(allowed.nodes, (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(allowed.preferred, 1u);
}

}  // namespace
}  // namespace rt
