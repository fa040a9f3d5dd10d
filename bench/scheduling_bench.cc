// Measures how long one scheduling decision takes, by the number of nodes. Each node has CPUs,
// memory, a resource of its own and LABELS labels, one of which is its own; a tenth has GPUs.
//
// Usage: scheduling_bench [LABELS]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/scheduling/bundles.h"
#include "common/scheduling/constraint.h"
#include "common/scheduling/policy.h"

namespace rt::scheduling {
namespace {

constexpr int kZones = 8, kGpuNodes = 10, kCpus = 64, kRounds = 7;
constexpr int64_t kRoundUs = 40'000;

NodeId node_id(int number) {
  Rng rng(static_cast<uint64_t>(number) + 1);
  return NodeId::random(rng);
}

ResourceSet amounts(const std::map<std::string, double>& of) {
  return ResourceSet::from_map(of).value();
}

Nodes cluster_of(int count, int labels) {
  Nodes nodes;
  Rng rng(1);
  for (int i = 0; i < count; ++i) {
    Labels of_node;
    of_node["name"] = fmt::format("node-{}", i);
    of_node["zone"] = fmt::format("zone-{}", i % kZones);
    for (int k = 2; k < labels; ++k)
      of_node[fmt::format("label-{}", k)] = fmt::format("value-{}", rng.below(4));
    std::map<std::string, double> total{
        {"CPU", kCpus}, {"memory", 1e11}, {fmt::format("node:10.0.{}.{}", i / 256, i % 256), 1}};
    if (i % kGpuNodes == 0) total["GPU"] = 8;
    const NodeSlot slot = nodes.put(node_id(i), of_node, amounts(total));
    total["CPU"] = static_cast<double>(rng.below(kCpus + 1));
    nodes.set_free(slot, amounts(total));
  }
  return nodes;
}

// Returns the median over rounds of the mean time, in microseconds.
template <class Decision>
double microseconds(const Decision& decision) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    int64_t done = 0;
    const int64_t start = steady_now_us();
    int64_t now = start;
    for (; now - start < kRoundUs; now = steady_now_us()) {
      for (int i = 0; i < 16; ++i, ++done) decision();
    }
    rounds.push_back(static_cast<double>(now - start) / static_cast<double>(done));
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

int64_t g_sum = 0;  // The sum keeps the compiler from leaving decisions out.

void measure(int count, int labels) {
  Nodes nodes = cluster_of(count, labels);
  const ResourceSet cpu = amounts({{"CPU", 1}}), gpu = amounts({{"CPU", 1}, {"GPU", 1}});
  proto::NodeConstraint zone;
  proto::LabelRule& in = *zone.mutable_hard()->add_rules();
  in.set_key("zone");
  in.add_values("zone-1");
  in.add_values("zone-2");
  proto::LabelRule& other = *zone.mutable_hard()->add_rules();
  other.set_key("label-2");
  other.set_op(proto::LabelRule::NOT_IN);
  other.add_values("value-0");
  auto decide = [&](const ResourceSet& resources, proto::SchedulingStrategy strategy,
                    const proto::NodeConstraint* constraint) {
    NodeMask fitting = nodes.open() & nodes.having(resources, Amount::kFree);
    AllowedNodes allowed;
    if (constraint) {
      allowed = allowed_nodes(*constraint, resources, nodes);
      fitting &= allowed.nodes;
    }
    g_sum += choose(nodes, {.resources = resources, .strategy = strategy}, std::move(fitting),
                    allowed.preferred);
  };
  Rng rng(2);
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", count,
             microseconds([&] { decide(cpu, proto::DEFAULT, nullptr); }),
             microseconds([&] { decide(cpu, proto::SPREAD, nullptr); }),
             microseconds([&] { decide(gpu, proto::DEFAULT, nullptr); }),
             microseconds([&] { decide(cpu, proto::DEFAULT, &zone); }), microseconds([&] {
               const auto slot = static_cast<NodeSlot>(rng.below(static_cast<uint64_t>(count)));
               nodes.set_free(slot, amounts({{"CPU", static_cast<double>(rng.below(kCpus))},
                                             {"memory", 1e11}}));
             }));
}

// Measures placement groups: one bundle, with and without a label selector, and 1,000 bundles.
void measure_bundles(int count, int labels) {
  Nodes nodes = cluster_of(count, labels);
  auto group = [](proto::GroupSpec::Strategy strategy, int bundles, bool selects) {
    proto::GroupSpec spec;
    spec.set_strategy(strategy);
    for (int i = 0; i < bundles; ++i) {
      proto::BundleSpec& bundle = *spec.add_bundles();
      amounts({{"CPU", 1}}).to_proto(bundle.mutable_resources());
      if (!selects) continue;
      proto::LabelRule& rule = *bundle.mutable_selector()->add_rules();
      rule.set_key("zone");
      rule.add_values("zone-1");
    }
    return BundleSet(spec);
  };
  auto time_of = [&](const BundleSet& set) {
    return microseconds([&] {
      auto found = assign_bundles(set, {}, nodes, Amount::kFree);
      g_sum += found ? found->back() : 1;
    });
  };
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} |", count,
             time_of(group(proto::GroupSpec::PACK, 1, false)),
             time_of(group(proto::GroupSpec::SPREAD, 1, false)),
             time_of(group(proto::GroupSpec::PACK, 1, true)));
  for (auto strategy : {proto::GroupSpec::PACK, proto::GroupSpec::SPREAD,
                        proto::GroupSpec::STRICT_PACK, proto::GroupSpec::STRICT_SPREAD})
    fmt::print(" {:.0f} |", time_of(group(strategy, 1'000, false)));
  fmt::print("\n");
}

}  // namespace
}  // namespace rt::scheduling

int main(int argc, char** argv) {
  const int labels = argc > 1 ? std::atoi(argv[1]) : 100;
  fmt::print("| nodes | DEFAULT, µs | SPREAD | with a GPU | with labels | a report |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  for (int count : {1, 10, 100, 1'000, 10'000}) rt::scheduling::measure(count, labels);
  fmt::print(
      "\n| nodes | one bundle PACK, µs | SPREAD | with a selector | 1,000 bundles PACK | SPREAD | "
      "STRICT_PACK | STRICT_SPREAD |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  for (int count : {1, 100, 1'000}) rt::scheduling::measure_bundles(count, labels);
  return rt::scheduling::g_sum == 0;
}
