// Says for people why the bundles of a group find no room. See bundles.h.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/scheduling/bundle_search.h"
#include "common/scheduling/constraint.h"

namespace rt::scheduling {
namespace {

using Missing = std::vector<std::pair<std::string, int64_t>>;

std::string text_of(const Missing& missing) {
  std::vector<std::string> parts;
  for (const auto& [name, units] : missing)
    parts.push_back(fmt::format("{} {}", static_cast<double>(units) / ResourceSet::kUnit, name));
  return fmt::format("{}", fmt::join(parts, " and "));
}

// The node that lacks the smallest share of what is asked, and what it lacks.
template <class Lacking>
std::pair<NodeSlot, Missing> nearest(const NodeMask& nodes, const ResourceSet& wanted,
                                     const Lacking& lacking) {
  std::pair<NodeSlot, Missing> best{kNoNode, {}};
  double best_share = 0;
  for (NodeSlot node = nodes.first(); node != kNoNode; node = nodes.first(node + 1)) {
    Missing missing = lacking(node);
    double share = 0;
    for (const auto& [name, units] : missing)
      share += static_cast<double>(units) /
               static_cast<double>(std::max<int64_t>(wanted.units(name), 1));
    if (best.first != kNoNode && share >= best_share) continue;
    best = {node, std::move(missing)};
    best_share = share;
  }
  return best;
}

struct Explanation {
  const BundleSet& set;
  const Nodes& nodes;
  const BundleSearch& search;
  const NodeMask& eligible;
  bool infeasible;
  const std::function<std::string(const NodeId&)>& name_of;

  std::string lacks(const std::string& what, const NodeMask& among, const ResourceSet& wanted,
                    const std::function<Missing(NodeSlot)>& lacking) const {
    const auto [node, missing] = nearest(among, wanted, lacking);
    if (node == kNoNode) return what + ": no node takes new work";
    return fmt::format("{}: the nearest, {}, lacks {}", what, name_of(nodes.id(node)),
                       text_of(missing));
  }

  // The first bundle that finds no room even by itself, or "".
  std::string of_single() const {
    for (size_t bundle = 0; bundle < set.size(); ++bundle) {
      const size_t kind = set.kind_of[bundle];
      if (!std::count(search.wanting().begin(), search.wanting().end(), bundle)) continue;
      if (!(search.fitting(kind) & eligible).empty()) continue;
      const std::string name =
          fmt::format("bundle {} {}", bundle, set.kinds[kind].resources.to_string());
      if (search.matching(kind).empty()) {
        proto::NodeConstraint constraint;
        *constraint.mutable_hard() = set.kinds[kind].selector;
        return fmt::format("{} fits on no node: there is not {}", name,
                           scheduling::describe(constraint));
      }
      return lacks(name + (infeasible ? " fits on no node" : " finds no room now"),
                   search.matching(kind) & eligible, set.kinds[kind].resources,
                   [&](NodeSlot node) { return search.lacking(kind, node); });
    }
    return "";
  }

  std::string of_all() const {
    if (set.strategy == proto::GroupSpec::STRICT_PACK) {
      ResourceSet sum;
      for (size_t bundle : search.wanting()) sum.add(set.resources(bundle));
      return lacks(fmt::format("its {} bundles together {} {} (STRICT_PACK)",
                               search.wanting().size(), sum.to_string(),
                               infeasible ? "fit on no node" : "find no room on one node now"),
                   eligible, sum, [&](NodeSlot node) { return search.lacking_for_all(node); });
    }
    if (set.strategy == proto::GroupSpec::STRICT_SPREAD)
      return fmt::format(
          "its {} bundles need as many different nodes (STRICT_SPREAD), and there are not enough "
          "nodes {}: {} {}",
          set.size(), infeasible ? "that are large enough" : "with room now", eligible.size(),
          infeasible ? "live" : "take new work");
    return fmt::format("each of its bundles {}, but not all {} of them together",
                       infeasible ? "fits on a node" : "finds room on a node now",
                       search.wanting().size());
  }
};

}  // namespace

BundleShortage explain_bundles(const BundleSet& set, const BundleNodes& kept, const Nodes& nodes,
                               const std::function<std::string(const NodeId&)>& name_of) {
  BundleShortage shortage;
  if (assign_bundles(set, kept, nodes, Amount::kFree)) return shortage;
  shortage.infeasible = !assign_bundles(set, kept, nodes, Amount::kTotal);
  const BundleSearch search(set, kept, nodes, shortage.infeasible ? Amount::kTotal : Amount::kFree);
  const NodeMask& eligible = shortage.infeasible ? nodes.all() : nodes.open();
  const Explanation explanation{set, nodes, search, eligible, shortage.infeasible, name_of};
  shortage.why = explanation.of_single();
  if (shortage.why.empty()) shortage.why = explanation.of_all();
  if (!set.same_label.empty())
    shortage.why += fmt::format("; all of its nodes must have the same value of {}",
                                fmt::join(set.same_label, " and of "));
  return shortage;
}

}  // namespace rt::scheduling
