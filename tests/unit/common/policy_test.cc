// Which node a decision takes, and that the index of nodes answers as a look at each node would.
#include "common/scheduling/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/base/rng.h"

namespace rt::scheduling {
namespace {

NodeId numbered_node(int number) {
  std::string binary(NodeId::kSize, '\0');
  binary[0] = static_cast<char>(number);
  binary[1] = static_cast<char>(number / 256);
  binary[2] = 'n';
  return NodeId::from_binary(binary);
}

ResourceSet amounts(const std::map<std::string, double>& of) {
  return ResourceSet::from_map(of).value();
}

class PolicyTest : public testing::Test {
 protected:
  NodeSlot add(const std::map<std::string, double>& total) {
    return nodes.put(numbered_node(next_++), {}, amounts(total));
  }
  void leave_free(NodeSlot node, const std::map<std::string, double>& free) {
    nodes.set_free(node, amounts(free));
  }
  NodeSlot chosen(const std::map<std::string, double>& of,
                  proto::SchedulingStrategy strategy = proto::DEFAULT, NodeSlot near = kNoNode) {
    const ResourceSet resources = amounts(of);
    const NodeSlot node =
        choose(nodes, {.resources = resources, .strategy = strategy, .near = near, .last = last},
               nodes.open() & nodes.having(resources, Amount::kFree));
    if (node != kNoNode) last = node;
    return node;
  }

  Nodes nodes;
  NodeSlot last = kNoNode;

 private:
  int next_ = 0;
};

TEST_F(PolicyTest, DefaultStaysNearThenPacksThenTakesTheLeastUsed) {
  for (int i = 0; i < 3; ++i) add({{"CPU", 8}});
  leave_free(1, {{"CPU", 6}});
  EXPECT_EQ(chosen({{"CPU", 1}}, proto::DEFAULT, 2), 2);
  EXPECT_EQ(chosen({{"CPU", 1}}), 1);  // The fullest node below the threshold is taken.
  leave_free(2, {{"CPU", 4}});
  EXPECT_EQ(chosen({{"CPU", 1}}, proto::DEFAULT, 2), 1);  // One more CPU would be beyond half.
  leave_free(0, {{"CPU", 2}});
  leave_free(1, {{"CPU", 1}});
  EXPECT_EQ(chosen({{"CPU", 1}}), 2);
  EXPECT_EQ(chosen({{"CPU", 3}}), 2);
  EXPECT_EQ(chosen({{"CPU", 5}}), kNoNode);
}

TEST_F(PolicyTest, MemoryCountsThoughLittleOfItIsRequested) {
  for (int i = 0; i < 2; ++i) add({{"CPU", 8}, {"memory", 100}});
  leave_free(0, {{"CPU", 8}, {"memory", 10}});
  EXPECT_EQ(chosen({{"CPU", 1}}, proto::DEFAULT, 0), 1);
}

TEST_F(PolicyTest, SpreadTakesTurnsAndPassesOverWhatIsFull) {
  for (int i = 0; i < 4; ++i) add({{"CPU", 8}});
  leave_free(2, {});
  std::vector<NodeSlot> order;
  for (int i = 0; i < 6; ++i) order.push_back(chosen({{"CPU", 1}}, proto::SPREAD));
  EXPECT_EQ(order, (std::vector<NodeSlot>{0, 1, 3, 0, 1, 3}));
}

TEST_F(PolicyTest, SpreadFillsTheGapThatAnActorLeft) {
  for (int i = 0; i < 3; ++i) {
    add({{"CPU", 8}});
    nodes.set_actors(i, {}, amounts({{"CPU", 1}}), i == 1 ? 0 : 1);
  }
  last = 1;
  EXPECT_EQ(chosen({{"CPU", 1}}, proto::SPREAD), 1);
}

TEST_F(PolicyTest, WhatActorsWerePlacedWithIsLoad) {
  for (int i = 0; i < 2; ++i) add({{"CPU", 4}});
  nodes.set_actors(0, {}, amounts({{"CPU", 4}}), 4);
  EXPECT_EQ(chosen({{"CPU", 1}}), 1);
}

TEST_F(PolicyTest, NodesWithGpusAreLeftToWhatNeedsThem) {
  add({{"CPU", 8}, {"GPU", 2}});
  add({{"CPU", 8}});
  EXPECT_EQ(chosen({{"CPU", 1}}, proto::DEFAULT, 0), 1);
  EXPECT_EQ(chosen({{"CPU", 1}, {"GPU", 1}}, proto::DEFAULT, 1), 0);
  leave_free(1, {});
  EXPECT_EQ(chosen({{"CPU", 1}}), 0);
}

TEST_F(PolicyTest, AClosedNodeIsNotOpenAndASlotIsUsedAgain) {
  add({{"CPU", 1}});
  add({{"CPU", 1}});
  nodes.set_open(0, false);
  EXPECT_EQ(chosen({{"CPU", 1}}), 1);
  EXPECT_EQ(nodes.having(amounts({{"CPU", 1}}), Amount::kTotal).size(), 2);
  nodes.remove(numbered_node(0));
  EXPECT_EQ(nodes.find(numbered_node(0)), kNoNode);
  EXPECT_EQ(add({{"CPU", 2}}), 0);
  EXPECT_EQ(chosen({{"CPU", 2}}), 0);
}

// The same nodes as plain records, each of which is looked at.
struct Plain {
  Labels labels;
  ResourceSet total, free, held;
  bool open = true;
};

bool holds(const proto::LabelRule& rule, const Labels& labels) {
  auto label = labels.find(rule.key());
  const bool there = label != labels.end();
  bool listed = false;
  for (const auto& value : rule.values()) listed |= there && label->second == value;
  switch (rule.op()) {
    case proto::LabelRule::IN: return listed;
    case proto::LabelRule::NOT_IN: return !listed;
    case proto::LabelRule::EXISTS: return there;
    default: return !there;
  }
}

TEST(NodesTest, AnswersAsALookAtEachNodeWould) {
  constexpr int kIds = 90, kSteps = 4'000;
  Rng rng(7);
  Nodes nodes;
  std::map<int, Plain> plain;
  const std::vector<std::string> names{"CPU", "memory", "GPU", "rare"}, keys{"zone", "rack", "own"};
  auto random_amounts = [&](int64_t most) {
    ResourceSet out;
    for (const auto& name : names) {
      if (name == "CPU" || rng.chance(name == "rare" ? 0.1 : 0.6))
        out.set_units(name, static_cast<int64_t>(rng.below(static_cast<uint64_t>(most))) + 1);
    }
    return out;
  };
  auto random_value = [&](const std::string& key) {
    return std::to_string(rng.below(key == "own" ? 1'000 : 4));
  };
  for (int step = 0; step < kSteps; ++step) {
    const int id = static_cast<int>(rng.below(kIds));
    auto known = plain.find(id);
    const NodeSlot slot = nodes.find(numbered_node(id));
    ASSERT_EQ(slot == kNoNode, known == plain.end());
    if (known == plain.end() || rng.chance(0.1)) {
      Plain node;
      if (known != plain.end()) node.open = known->second.open;
      node.total = node.free = random_amounts(20);
      for (const auto& key : keys) {
        if (rng.chance(0.7)) node.labels[key] = random_value(key);
      }
      nodes.put(numbered_node(id), node.labels, node.total);
      if (known != plain.end()) {  // The free amounts stay as they were where nothing changed.
        nodes.set_free(slot, node.free);
        nodes.set_actors(slot, {}, {}, 0);
      }
      plain[id] = node;
    } else if (rng.chance(0.1)) {
      nodes.remove(numbered_node(id));
      plain.erase(known);
    } else {
      Plain& node = known->second;
      node.free = random_amounts(20);
      node.held = random_amounts(5);
      node.open = rng.chance(0.8);
      nodes.set_free(slot, node.free);
      nodes.set_actors(slot, node.held, node.held, 1);
      nodes.set_open(slot, node.open);
    }
    const ResourceSet request = random_amounts(20);
    proto::LabelSelector selector;
    for (const auto& key : keys) {
      if (rng.chance(0.5)) continue;
      proto::LabelRule& rule = *selector.add_rules();
      rule.set_key(key);
      rule.set_op(static_cast<proto::LabelRule::Op>(rng.below(4)));
      for (int i = 0; i < 2; ++i) rule.add_values(random_value(key));
    }
    const NodeMask matching = nodes.matching(selector),
                   total = nodes.having(request, Amount::kTotal),
                   free = nodes.having(request, Amount::kFree),
                   beside = nodes.having(request, Amount::kBesideActors);
    const std::vector<float> used = nodes.utilisations(request);
    ASSERT_EQ(nodes.size(), plain.size());
    ASSERT_EQ(nodes.all().size(), static_cast<int>(plain.size()));
    for (const auto& [number, node] : plain) {
      const NodeSlot at = nodes.find(numbered_node(number));
      ASSERT_TRUE(nodes.all().contains(at));
      ASSERT_EQ(nodes.open().contains(at), node.open);
      bool fits = true;
      for (const auto& rule : selector.rules()) fits &= holds(rule, node.labels);
      ASSERT_EQ(matching.contains(at), fits) << selector.ShortDebugString();
      ASSERT_EQ(total.contains(at), node.total.contains(request));
      ResourceSet left = node.total;
      left.subtract_allowing_debt(node.held);
      bool enough = true, enough_beside = true;
      for (const auto& [name, wanted] : request.all()) {
        // A node cannot have more free than it has in total.
        const bool has = node.total.units(name) > 0;
        enough &= has && node.free.units(name) >= wanted;
        enough_beside &= has && left.units(name) >= wanted;
      }
      ASSERT_EQ(free.contains(at), enough);
      ASSERT_EQ(beside.contains(at), enough_beside);
      // Actors count with what they hold even if it is reported as free.
      ResourceSet in_use, unused = node.total;
      for (const auto& [name, units] : node.total.all())
        in_use.set_units(name, std::max(units - node.free.units(name), node.held.units(name)));
      unused.subtract_allowing_debt(in_use);
      ASSERT_NEAR(used[static_cast<size_t>(at)], utilisation(node.total, unused, request), 1e-4);
    }
  }
}

TEST(NodeMaskTest, FindsTheNextAcrossWords) {
  NodeMask mask;
  for (NodeSlot slot : {0, 63, 64, 200}) mask.add(slot);
  EXPECT_EQ(mask.first(), 0);
  EXPECT_EQ(mask.first(1), 63);
  EXPECT_EQ(mask.first(64), 64);
  EXPECT_EQ(mask.first(65), 200);
  EXPECT_EQ(mask.first(201), kNoNode);
  EXPECT_EQ(mask.first(1'000), kNoNode);
  mask.remove(200);
  EXPECT_EQ(mask.first(65), kNoNode);
  EXPECT_EQ(mask.size(), 3);
}

}  // namespace
}  // namespace rt::scheduling
