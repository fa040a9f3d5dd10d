// Tests on which nodes the bundles of a placement group are placed.
#include "common/scheduling/bundles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/base/rng.h"

namespace rt::scheduling {
namespace {

using Amounts = std::map<std::string, double>;
using Spec = proto::GroupSpec;

ResourceSet set_of(const Amounts& of) { return ResourceSet::from_map(of).value(); }

class BundlesTest : public testing::Test {
 protected:
  NodeSlot add(const Amounts& total, const std::map<std::string, std::string>& labels = {}) {
    std::string binary(NodeId::kSize, '\0');
    binary[0] = static_cast<char>(next_);
    binary[1] = static_cast<char>(next_++ / 256);
    binary[2] = 'n';
    Labels of_node;
    for (const auto& [key, value] : labels) of_node[key] = value;
    return nodes.put(NodeId::from_binary(binary), of_node, set_of(total));
  }
  static Spec spec(Spec::Strategy strategy, const std::vector<Amounts>& bundles) {
    Spec out;
    out.set_strategy(strategy);
    for (const Amounts& amounts : bundles)
      set_of(amounts).to_proto(out.add_bundles()->mutable_resources());
    return out;
  }
  static void require(proto::BundleSpec* bundle, const std::string& label,
                      const std::string& value) {
    proto::LabelRule& rule = *bundle->mutable_selector()->add_rules();
    rule.set_key(label);
    rule.add_values(value);
  }
  // Returns the chosen nodes; empty if there is no room.
  BundleNodes placed(const Spec& spec, const BundleNodes& kept = {},
                     Amount amount = Amount::kFree) {
    return assign_bundles(BundleSet(spec), kept, nodes, amount).value_or(BundleNodes{});
  }
  BundleNodes placed(Spec::Strategy strategy, const std::vector<Amounts>& bundles) {
    return placed(spec(strategy, bundles));
  }
  BundleShortage explained(const Spec& spec, const BundleNodes& kept = {}) {
    return explain_bundles(BundleSet(spec), kept, nodes,
                           [](const NodeId& id) { return "node-" + std::to_string(id.data()[0]); });
  }
  static size_t different(const BundleNodes& of) {
    return std::set<NodeSlot>(of.begin(), of.end()).size();
  }

  Nodes nodes;

 private:
  int next_ = 0;
};

TEST_F(BundlesTest, PackTakesFewNodes) {
  add({{"CPU", 2}});
  add({{"CPU", 8}});
  add({{"CPU", 4}});
  EXPECT_EQ(placed(Spec::PACK, {{{"CPU", 2}}, {{"CPU", 2}}, {{"CPU", 4}}}), (BundleNodes{1, 1, 1}));
  // SPREAD uses different nodes only as far as possible.
  EXPECT_EQ(different(placed(Spec::PACK, {{{"CPU", 8}}, {{"CPU", 3}}})), 2u);
  EXPECT_TRUE(placed(Spec::PACK, {{{"CPU", 8}}, {{"CPU", 8}}}).empty());
}

TEST_F(BundlesTest, PackFillsAUsedNodeBeforeAnIdleOne) {
  add({{"CPU", 8}});
  add({{"CPU", 8}});
  nodes.set_free(1, set_of({{"CPU", 4}}));
  EXPECT_EQ(placed(Spec::PACK, {{{"CPU", 2}}}), BundleNodes{1});
  EXPECT_EQ(placed(Spec::PACK, {{{"CPU", 4}}, {{"CPU", 4}}}), (BundleNodes{0, 0}));
}

TEST_F(BundlesTest, NodesWithGpusAreLeftToThoseWhoNeedOne) {
  add({{"CPU", 8}, {"GPU", 1}});
  add({{"CPU", 8}});
  for (auto strategy : {Spec::PACK, Spec::SPREAD, Spec::STRICT_PACK, Spec::STRICT_SPREAD}) {
    EXPECT_EQ(placed(strategy, {{{"CPU", 1}}}), BundleNodes{1});
    EXPECT_EQ(placed(strategy, {{{"CPU", 1}, {"GPU", 1}}}), BundleNodes{0});
  }
}

TEST_F(BundlesTest, SpreadGoesRoundTheNodes) {
  for (int i = 0; i < 3; ++i) add({{"CPU", 4}});
  BundleNodes found = placed(Spec::SPREAD, std::vector<Amounts>(6, {{"CPU", 1}}));
  for (NodeSlot node = 0; node < 3; ++node)
    EXPECT_EQ(std::count(found.begin(), found.end(), node), 2);
  // The least used node comes first.
  nodes.set_free(0, set_of({{"CPU", 2}}));
  nodes.set_free(1, set_of({{"CPU", 3}}));
  EXPECT_EQ(placed(Spec::SPREAD, {{{"CPU", 1}}}), BundleNodes{2});
}

TEST_F(BundlesTest, StrictPackTakesOneNodeAndPrefersItsTarget) {
  add({{"CPU", 4}});
  add({{"CPU", 8}});
  add({{"CPU", 8}});
  Spec group = spec(Spec::STRICT_PACK, {{{"CPU", 4}}, {{"CPU", 2}}});
  EXPECT_EQ(different(placed(group)), 1u);
  group.set_soft_target_node_id(nodes.id(2).binary());
  EXPECT_EQ(placed(group), (BundleNodes{2, 2}));
  nodes.set_free(2, set_of({{"CPU", 5}}));
  EXPECT_EQ(placed(group), (BundleNodes{1, 1}));  // The preference is soft.
  EXPECT_TRUE(placed(Spec::STRICT_PACK, {{{"CPU", 8}}, {{"CPU", 1}}}).empty());
}

TEST_F(BundlesTest, StrictSpreadFindsDifferentNodesEvenIfOthersHaveToMove) {
  add({{"CPU", 4}}, {{"zone", "a"}});
  add({{"CPU", 2}}, {{"zone", "a"}});
  add({{"CPU", 2}}, {{"zone", "b"}});
  Spec group = spec(Spec::STRICT_SPREAD, {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 3}}});
  require(group.mutable_bundles(0), "zone", "a");
  EXPECT_EQ(placed(group), (BundleNodes{1, 2, 0}));
  EXPECT_TRUE(placed(Spec::STRICT_SPREAD, std::vector<Amounts>(4, {{"CPU", 1}})).empty());
  EXPECT_TRUE(placed(Spec::STRICT_SPREAD, {{{"CPU", 3}}, {{"CPU", 3}}}).empty());
}

TEST_F(BundlesTest, ABundleGoesToANodeThatItsSelectorMatches) {
  add({{"CPU", 4}}, {{"gpu", "a"}});
  add({{"CPU", 4}}, {{"gpu", "b"}});
  for (auto strategy : {Spec::PACK, Spec::SPREAD, Spec::STRICT_SPREAD}) {
    Spec group = spec(strategy, {{{"CPU", 1}}, {{"CPU", 1}}});
    require(group.mutable_bundles(0), "gpu", "b");
    require(group.mutable_bundles(1), "gpu", "a");
    EXPECT_EQ(placed(group), (BundleNodes{1, 0}));
  }
  Spec group = spec(Spec::STRICT_PACK, {{{"CPU", 1}}, {{"CPU", 1}}});
  require(group.mutable_bundles(0), "gpu", "b");
  EXPECT_EQ(placed(group), (BundleNodes{1, 1}));
  require(group.mutable_bundles(1), "gpu", "a");
  EXPECT_TRUE(placed(group).empty());
}

TEST_F(BundlesTest, ATopologyKeepsAllBundlesWhereALabelIsTheSame) {
  add({{"CPU", 1}}, {{"rack", "1"}});
  add({{"CPU", 4}}, {{"rack", "2"}});
  add({{"CPU", 1}}, {{"rack", "3"}});
  add({{"CPU", 1}}, {{"rack", "3"}});
  add({{"CPU", 9}});
  Spec group = spec(Spec::STRICT_SPREAD, {{{"CPU", 1}}, {{"CPU", 1}}});
  (*group.mutable_topology_strategy())["rack"] = "STRICT_PACK";
  BundleNodes found = placed(group);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (BundleNodes{2, 3}));
  // The node of a bundle that stays decides the value.
  Spec pack = spec(Spec::PACK, {{{"CPU", 1}}, {{"CPU", 1}}});
  (*pack.mutable_topology_strategy())["rack"] = "STRICT_PACK";
  EXPECT_EQ(placed(pack, {2, kNoNode}), (BundleNodes{2, 2}));
  nodes.set_free(2, {});
  EXPECT_EQ(placed(pack, {2, kNoNode}), (BundleNodes{2, 3}));
  nodes.set_free(3, {});
  EXPECT_TRUE(placed(pack, {2, kNoNode}).empty());
  EXPECT_NE(explained(pack, {2, kNoNode}).why.find("the same value of rack"), std::string::npos);
}

TEST_F(BundlesTest, BundlesThatStayAreKeptInMind) {
  for (int i = 0; i < 3; ++i) add({{"CPU", 4}});
  Spec spread = spec(Spec::STRICT_SPREAD, std::vector<Amounts>(3, {{"CPU", 1}}));
  BundleNodes found = placed(spread, {0, kNoNode, 2});
  EXPECT_EQ(found, (BundleNodes{0, 1, 2}));
  Spec pack = spec(Spec::STRICT_PACK, std::vector<Amounts>(3, {{"CPU", 1}}));
  EXPECT_EQ(placed(pack, {kNoNode, 1, 1}), (BundleNodes{1, 1, 1}));
  nodes.set_free(1, {});
  EXPECT_TRUE(placed(pack, {kNoNode, 1, 1}).empty());
  EXPECT_EQ(placed(spec(Spec::PACK, std::vector<Amounts>(2, {{"CPU", 1}})), {2, kNoNode}),
            (BundleNodes{2, 2}));
  EXPECT_NE(placed(spec(Spec::SPREAD, std::vector<Amounts>(2, {{"CPU", 1}})), {2, kNoNode})[1], 2);
  // The amounts of bundles that stay count against the total of their node.
  nodes.set_free(1, set_of({{"CPU", 4}}));
  Spec large = spec(Spec::STRICT_PACK, std::vector<Amounts>(2, {{"CPU", 3}}));
  EXPECT_TRUE(placed(large, {1, kNoNode}, Amount::kTotal).empty());
}

TEST_F(BundlesTest, ClosedNodesTakeNothingButCountForWhatCouldRun) {
  add({{"CPU", 4}});
  nodes.set_open(0, false);
  Spec group = spec(Spec::PACK, {{{"CPU", 4}}});
  EXPECT_TRUE(placed(group).empty());
  EXPECT_EQ(placed(group, {}, Amount::kTotal), BundleNodes{0});
  EXPECT_FALSE(explained(group).infeasible);
  EXPECT_EQ(explained(group).why,
            "bundle 0 {'CPU': 4.0} finds no room now: no node takes new work");
}

TEST_F(BundlesTest, ClosedNodesAreToldFromOthersThatABundleMayNotGoTo) {
  add({{"CPU", 4}}, {{"zone", "a"}});
  add({{"CPU", 4}}, {{"zone", "b"}});
  nodes.set_open(0, false);
  Spec group = spec(Spec::PACK, {{{"CPU", 4}}});
  require(group.mutable_bundles(0), "zone", "a");
  EXPECT_FALSE(explained(group).infeasible);
  EXPECT_EQ(explained(group).why,
            "bundle 0 {'CPU': 4.0} finds no room now: none of the nodes that it may go to takes "
            "new work");
}

TEST_F(BundlesTest, ShortagesAreExplained) {
  add({{"CPU", 4}}, {{"zone", "a"}});
  add({{"CPU", 2}, {"GPU", 1}});
  auto expect = [&](const Spec& group, bool infeasible, const std::string& why) {
    BundleShortage shortage = explained(group);
    EXPECT_EQ(shortage.infeasible, infeasible) << why;
    EXPECT_EQ(shortage.why, why);
  };
  expect(spec(Spec::PACK, {{{"CPU", 1}}}), false, "");
  expect(spec(Spec::PACK, {{{"CPU", 1}}, {{"CPU", 64}}}), true,
         "bundle 1 {'CPU': 64.0} fits on no node: the nearest, node-0, lacks 60 CPU");
  expect(spec(Spec::PACK, {{{"CPU", 3}, {"GPU", 1}}}), true,
         "bundle 0 {'CPU': 3.0, 'GPU': 1.0} fits on no node: the nearest, node-1, lacks 1 CPU");
  expect(spec(Spec::STRICT_PACK, {{{"CPU", 3}}, {{"CPU", 3}}}), true,
         "its 2 bundles together {'CPU': 6.0} fit on no node (STRICT_PACK): the nearest, node-0, "
         "lacks 2 CPU");
  expect(spec(Spec::STRICT_SPREAD, std::vector<Amounts>(3, {{"CPU", 1}})), true,
         "its 3 bundles need as many different nodes (STRICT_SPREAD), and there are not enough "
         "nodes that are large enough: 2 live");
  expect(spec(Spec::PACK, {{{"CPU", 4}}, {{"CPU", 3}}}), true,
         "each of its bundles fits on a node, but not all 2 of them together");
  Spec selected = spec(Spec::PACK, {{{"CPU", 1}}});
  require(selected.mutable_bundles(0), "zone", "b");
  expect(selected, true,
         "bundle 0 {'CPU': 1.0} fits on no node: there is not a node where zone is in (b)");
  nodes.set_free(0, set_of({{"CPU", 2}}));
  expect(spec(Spec::PACK, {{{"CPU", 4}}}), false,
         "bundle 0 {'CPU': 4.0} finds no room now: the nearest, node-0, lacks 2 CPU");
}

TEST_F(BundlesTest, APartOfAGpuIsOfOneDevice) {
  add({{"GPU", 2}});
  add({{"GPU", 1}});
  auto parts = [](const std::vector<double>& gpus) {
    std::vector<Amounts> bundles;
    for (double gpu : gpus) bundles.push_back({{"GPU", gpu}});
    return bundles;
  };
  auto on = [](const BundleNodes& found, NodeSlot node) {
    return std::count(found.begin(), found.end(), node);
  };
  for (auto strategy : {Spec::PACK, Spec::SPREAD}) {
    EXPECT_EQ(on(placed(strategy, parts({.6, .6, .6})), 0), 2);
    EXPECT_EQ(on(placed(strategy, parts({.4, .4, .4, .4, .4, .4})), 0), 4);
    EXPECT_EQ(on(placed(strategy, parts({1.5, .6})), 0), 1);
    EXPECT_EQ(placed(strategy, parts({.7, .7, .4, .2})).size(), 4u);
    EXPECT_TRUE(placed(strategy, parts({.6, .6, .6, .6})).empty());
  }
  EXPECT_EQ(placed(Spec::STRICT_PACK, parts({.7, .7, .2})), (BundleNodes{0, 0, 0}));
  EXPECT_TRUE(placed(Spec::STRICT_PACK, parts({.6, .6, .6})).empty());
  EXPECT_TRUE(placed(Spec::STRICT_PACK, parts({1, .6, .4})).size());
  BundleShortage shortage = explained(spec(Spec::PACK, parts({.6, .6, .6, .6})));
  EXPECT_TRUE(shortage.infeasible);
  EXPECT_EQ(shortage.why,
            "each of its bundles fits on a node, but not all 4 of them together; a part of a GPU "
            "must be free in one device");
  shortage = explained(spec(Spec::STRICT_PACK, parts({.6, .6, .6})));
  EXPECT_TRUE(shortage.infeasible);
  EXPECT_EQ(shortage.why,
            "its 3 bundles together {'GPU': 1.8} fit on no node (STRICT_PACK): the nearest, "
            "node-0, has as much, but its free GPUs are divided otherwise: a part of a GPU must be "
            "free in one device");
  // Bundles that stay keep their devices.
  nodes.set_free(0, set_of({{"GPU", .8}}));
  shortage = explained(spec(Spec::STRICT_PACK, parts({.6, .6, .8})), {0, 0, kNoNode});
  EXPECT_TRUE(shortage.infeasible);
  // A node with parts in use is taken to have them all of one device.
  nodes.set_free(0, set_of({{"GPU", 1.5}}));
  EXPECT_EQ(placed(Spec::STRICT_PACK, parts({.5, .8})), (BundleNodes{0, 0}));
  EXPECT_TRUE(placed(Spec::STRICT_PACK, parts({.6, .6})).empty());
  shortage = explained(spec(Spec::STRICT_PACK, parts({.6, .6})));
  EXPECT_FALSE(shortage.infeasible);
}

TEST_F(BundlesTest, LabelsThatNoNodeHasAreNamed) {
  add({{"CPU", 8}}, {{"zone", "a"}});
  add({{"CPU", 4}}, {{"zone", "b"}, {"rack", "1"}});
  Spec group = spec(Spec::STRICT_PACK, {{{"CPU", 1}}, {{"CPU", 1}}});
  require(group.mutable_bundles(0), "zone", "b");
  require(group.mutable_bundles(1), "zone", "a");
  EXPECT_EQ(explained(group).why,
            "no node has the labels that its 2 bundles ask for together (STRICT_PACK): there is "
            "not a node where zone is in (b) and zone is in (a)");
  // The nearest node is one that has the labels.
  group = spec(Spec::STRICT_PACK, {{{"CPU", 3}}, {{"CPU", 4}}});
  require(group.mutable_bundles(0), "zone", "b");
  EXPECT_EQ(explained(group).why,
            "its 2 bundles together {'CPU': 7.0} fit on no node (STRICT_PACK): the nearest, "
            "node-1, lacks 3 CPU");
  group = spec(Spec::PACK, {{{"CPU", 1}}});
  (*group.mutable_topology_strategy())["nolabel"] = "STRICT_PACK";
  EXPECT_TRUE(explained(group).infeasible);
  EXPECT_EQ(explained(group).why,
            "no node has the label nolabel, and all of its nodes must have the same value of it");
  (*group.mutable_topology_strategy())["rack"] = "STRICT_PACK";
  EXPECT_EQ(explained(group).why,
            "no node has the label nolabel, and all of its nodes must have the same value of it");
  group = spec(Spec::PACK, {{{"CPU", 6}}});
  (*group.mutable_topology_strategy())["rack"] = "STRICT_PACK";
  EXPECT_EQ(explained(group).why,
            "bundle 0 {'CPU': 6.0} fits on no node: the nearest, node-1, lacks 2 CPU; all of its "
            "nodes must have the same value of rack");
}

TEST_F(BundlesTest, LongListsOfResourcesAreShortened) {
  add({{"CPU", 1}});
  Amounts many;
  for (int i = 0; i < 1'000; ++i) many["\u00e9resource-" + std::to_string(i)] = 1;
  for (auto strategy : {Spec::PACK, Spec::STRICT_PACK}) {
    const std::string why = explained(spec(strategy, {many, {{"CPU", 1}}})).why;
    EXPECT_LT(why.size(), 1'000u);
    EXPECT_NE(why.find("\u2026"), std::string::npos);
    EXPECT_NE(why.find("the nearest, node-0, lacks"), std::string::npos);
  }
}

TEST_F(BundlesTest, EqualSetsHaveEqualKeys) {
  auto key = [](const Spec& spec) { return BundleSet(spec).key; };
  Spec a = spec(Spec::PACK, {{{"CPU", 1}, {"GPU", 1}}, {{"CPU", 2}}}), b = a;
  b.set_group_id("another");
  b.set_name("name");
  EXPECT_EQ(key(a), key(b));
  std::set<std::string> keys{key(a)};
  b = a;
  b.set_strategy(Spec::SPREAD);
  EXPECT_TRUE(keys.insert(key(b)).second);
  EXPECT_TRUE(keys.insert(key(spec(Spec::PACK, {{{"CPU", 2}}, {{"CPU", 1}, {"GPU", 1}}}))).second);
  b = a;
  require(b.mutable_bundles(1), "zone", "a");
  EXPECT_TRUE(keys.insert(key(b)).second);
  b = a;
  (*b.mutable_topology_strategy())["zone"] = "STRICT_PACK";
  EXPECT_TRUE(keys.insert(key(b)).second);
  EXPECT_TRUE(keys.insert(key(spec(Spec::PACK, {{{"CPU", 1}}}))).second);
  EXPECT_TRUE(keys.insert(key(spec(Spec::PACK, {{{"CPU", 1}}, {{"CPU", 1}}}))).second);
}

TEST_F(BundlesTest, AThousandBundlesOnAThousandNodes) {
  for (int i = 0; i < 1'000; ++i) add({{"CPU", 16}, {"memory", 100}});
  const std::vector<Amounts> bundles(1'000, {{"CPU", 1}, {"memory", 1}});
  EXPECT_EQ(different(placed(Spec::PACK, bundles)), 63u);
  EXPECT_EQ(different(placed(Spec::SPREAD, bundles)), 1'000u);
  EXPECT_EQ(different(placed(Spec::STRICT_SPREAD, bundles)), 1'000u);
  EXPECT_TRUE(placed(Spec::STRICT_PACK, bundles).empty());
}

// Small random cases against a look at every assignment.
class BundlesCheck : public BundlesTest {
 protected:
  struct Case {
    Spec spec;
    BundleNodes kept;
    std::vector<ResourceSet> free;  // By slot.
    std::vector<std::string> zone, rack;
  };

  Case make(Rng& rng) {
    Case c;
    nodes = Nodes();
    const int count = 1 + static_cast<int>(rng.below(4));
    for (int i = 0; i < count; ++i) {
      c.zone.push_back(rng.chance(0.5) ? "a" : "b");
      c.rack.push_back(std::string(1, static_cast<char>('1' + rng.below(3))));
      NodeSlot slot =
          add({{"CPU", 6}, {"GPU", 3}}, {{"zone", c.zone.back()}, {"rack", c.rack.back()}});
      c.free.push_back(set_of({{"CPU", static_cast<double>(rng.below(7))},
                               {"GPU", static_cast<double>(rng.below(4))}}));
      nodes.set_free(slot, c.free.back());
    }
    std::vector<Amounts> bundles(1 + rng.below(5));
    for (Amounts& amounts : bundles) {
      amounts["CPU"] = static_cast<double>(1 + rng.below(3));
      if (rng.chance(0.4)) amounts["GPU"] = static_cast<double>(1 + rng.below(2));
    }
    c.spec = spec(static_cast<Spec::Strategy>(rng.below(4)), bundles);
    for (auto& bundle : *c.spec.mutable_bundles()) {
      if (rng.chance(0.25)) require(&bundle, "zone", rng.chance(0.5) ? "a" : "b");
    }
    if (rng.chance(0.25)) (*c.spec.mutable_topology_strategy())["rack"] = "STRICT_PACK";
    c.kept.assign(bundles.size(), kNoNode);
    return c;
  }

  // Whether the nodes are as the specification demands, counting only bundles that are not kept.
  static bool valid(const Case& c, const BundleNodes& found) {
    std::vector<ResourceSet> left = c.free;
    for (size_t i = 0; i < found.size(); ++i) {
      const auto node = static_cast<size_t>(found[i]);
      const auto& bundle = c.spec.bundles(static_cast<int>(i));
      if (c.kept[i] != kNoNode) {
        if (found[i] != c.kept[i]) return false;
        continue;
      }
      if (bundle.selector().rules_size() > 0 &&
          bundle.selector().rules(0).values(0) != c.zone[node])
        return false;
      ResourceSet wanted = ResourceSet::from_proto(bundle.resources());
      if (!left[node].contains(wanted)) return false;
      left[node].subtract(wanted);
    }
    const size_t used = different(found);
    if (c.spec.strategy() == Spec::STRICT_PACK && used != 1) return false;
    if (c.spec.strategy() == Spec::STRICT_SPREAD && used != found.size()) return false;
    if (c.spec.topology_strategy_size() > 0) {
      for (NodeSlot node : found) {
        if (c.rack[static_cast<size_t>(node)] != c.rack[static_cast<size_t>(found[0])])
          return false;
      }
    }
    return true;
  }

  bool possible(const Case& c) const {
    BundleNodes found(c.kept.size(), 0);
    for (;;) {
      if (valid(c, found)) return true;
      size_t at = 0;
      while (at < found.size() && ++found[at] == static_cast<NodeSlot>(c.free.size()))
        found[at++] = 0;
      if (at == found.size()) return false;
    }
  }
};

TEST_F(BundlesCheck, RandomCasesAgreeWithAllAssignments) {
  Rng rng(11);
  int found = 0, impossible = 0;
  for (int round = 0; round < 3'000; ++round) {
    Case c = make(rng);
    BundleNodes nodes_of = placed(c.spec);
    ASSERT_EQ(!nodes_of.empty(), possible(c)) << "round " << round << ": " << c.spec.DebugString();
    EXPECT_EQ(explained(c.spec).why.empty(), !nodes_of.empty());
    if (nodes_of.empty()) {
      ++impossible;
      continue;
    }
    ++found;
    ASSERT_TRUE(valid(c, nodes_of)) << "round " << round << ": " << c.spec.DebugString();
    // Bundles are lost, and find nodes again beside those that stay.
    for (size_t i = 0; i < c.kept.size(); ++i) {
      if (rng.chance(0.5)) continue;
      c.kept[i] = nodes_of[i];
      c.free[static_cast<size_t>(nodes_of[i])].subtract(
          ResourceSet::from_proto(c.spec.bundles(static_cast<int>(i)).resources()));
      nodes.set_free(nodes_of[i], c.free[static_cast<size_t>(nodes_of[i])]);
    }
    BundleNodes again = placed(c.spec, c.kept);
    ASSERT_FALSE(again.empty()) << "round " << round << ": " << c.spec.DebugString();
    ASSERT_TRUE(valid(c, again)) << "round " << round << ": " << c.spec.DebugString();
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(impossible, 500);
}

// Parts of GPUs against a look at every assignment, where devices are shared out as node-managers
// do it: the largest demand first, each rest from the fullest device that has room.
TEST_F(BundlesCheck, PartsOfGpusAgreeWithAllAssignments) {
  auto holds = [](int64_t count, std::vector<int64_t> demands) {
    std::vector<int64_t> devices(static_cast<size_t>(count), ResourceSet::kUnit);
    std::sort(demands.rbegin(), demands.rend());
    for (int64_t units : demands) {
      for (int64_t& device : devices) {
        if (units < ResourceSet::kUnit || device != ResourceSet::kUnit) continue;
        device = 0;
        units -= ResourceSet::kUnit;
      }
      if (units == 0) continue;
      int64_t* best = nullptr;
      for (int64_t& device : devices) {
        if (device >= units && (!best || device < *best)) best = &device;
      }
      if (!best) return false;
      *best -= units;
    }
    return true;
  };
  Rng rng(12);
  int found = 0, impossible = 0;
  for (int round = 0; round < 3'000; ++round) {
    nodes = Nodes();
    std::vector<int64_t> devices(1 + rng.below(3));
    for (int64_t& count : devices)
      add({{"GPU", static_cast<double>(count = 1 + static_cast<int64_t>(rng.below(3)))}});
    std::vector<Amounts> bundles(1 + rng.below(6));
    for (Amounts& amounts : bundles) amounts["GPU"] = static_cast<double>(1 + rng.below(13)) / 10;
    const auto strategy = static_cast<Spec::Strategy>(rng.below(4));
    const Spec group = spec(strategy, bundles);
    const BundleSet set(group);
    auto valid = [&](const BundleNodes& of) {
      if (strategy == Spec::STRICT_PACK && different(of) != 1) return false;
      if (strategy == Spec::STRICT_SPREAD && different(of) != of.size()) return false;
      for (size_t node = 0; node < devices.size(); ++node) {
        std::vector<int64_t> demands;
        for (size_t i = 0; i < of.size(); ++i) {
          if (of[i] != static_cast<NodeSlot>(node)) continue;
          demands.push_back(set.resources(i).units("GPU"));
        }
        if (!holds(devices[node], demands)) return false;
      }
      return true;
    };
    bool possible = false;
    BundleNodes any(bundles.size(), 0);
    for (size_t at = 0; !possible && at < any.size();) {
      possible = valid(any);
      for (at = 0; at < any.size() && ++any[at] == static_cast<NodeSlot>(devices.size()); ++at)
        any[at] = 0;
    }
    const BundleNodes of = placed(group);
    ASSERT_EQ(!of.empty(), possible) << "round " << round << ": " << group.DebugString();
    if (!of.empty()) {
      ASSERT_TRUE(valid(of)) << "round " << round << ": " << group.DebugString();
    }
    ++(of.empty() ? impossible : found);
  }
  EXPECT_GT(found, 500);
  EXPECT_GT(impossible, 500);
}

}  // namespace
}  // namespace rt::scheduling
