// Says for people why the bundles of a group find no room. See bundles.h.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "common/scheduling/bundle_search.h"
#include "common/scheduling/constraint.h"

namespace rt::scheduling {
namespace {

using Missing = std::vector<std::pair<std::string, int64_t>>;

std::string text_of(const Missing& missing) {
  std::vector<std::string> parts;
  for (const auto& [name, units] : missing)
    parts.push_back(fmt::format("{} {}", static_cast<double>(units) / ResourceSet::kUnit, name));
  return shortened(fmt::format("{}", fmt::join(parts, " and ")));
}

constexpr std::string_view kGpuParts = "a part of a GPU must be free in one device";

std::string text_of(const ResourceSet& resources) { return shortened(resources.to_string()); }

std::string text_of(const proto::LabelSelector& selector) {
  proto::NodeConstraint constraint;
  *constraint.mutable_hard() = selector;
  return shortened(scheduling::describe(constraint));
}

// Finds the node that lacks the smallest share of the request, and what it lacks.
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
  const NodeMask& labelled;  // The nodes that have the labels of the topology strategy.
  const NodeMask& eligible;  // A part of `labelled`.
  bool infeasible;
  const std::function<std::string(const NodeId&)>& name_of;

  std::string nearest_lacks(const std::string& what, const NodeMask& among,
                            const ResourceSet& wanted,
                            const std::function<Missing(NodeSlot)>& lacking) const {
    const auto [node, missing] = nearest(among, wanted, lacking);
    if (node == kNoNode)
      return what + (nodes.open().empty() ? ": no node takes new work"
                                          : ": none of the nodes that it may go to takes new work");
    if (missing.empty())
      return fmt::format(
          "{}: the nearest, {}, has as much, but its free GPUs are divided otherwise: {}", what,
          name_of(nodes.id(node)), kGpuParts);
    return fmt::format("{}: the nearest, {}, lacks {}", what, name_of(nodes.id(node)),
                       text_of(missing));
  }

  // Explains the first bundle that finds no room even by itself; returns "" if there is none.
  std::string one_bundle() const {
    for (size_t bundle = 0; bundle < set.size(); ++bundle) {
      const size_t kind = set.kind_of[bundle];
      if (!std::count(search.wanting().begin(), search.wanting().end(), bundle)) continue;
      if (!(search.fitting(kind) & eligible).empty()) continue;
      const std::string name =
          fmt::format("bundle {} {}", bundle, text_of(set.kinds[kind].resources));
      const std::string where = text_of(set.kinds[kind].selector);
      if (search.matching(kind).empty())
        return fmt::format("{} fits on no node: there is not {}", name, where);
      if ((search.matching(kind) & labelled).empty())
        return fmt::format("{} fits on no node: there is not {} that has the label {}", name, where,
                           fmt::join(set.same_label, " and "));
      return nearest_lacks(name + (infeasible ? " fits on no node" : " finds no room now"),
                           search.matching(kind) & eligible, set.kinds[kind].resources,
                           [&](NodeSlot node) { return search.lacking(kind, node); });
    }
    return "";
  }

  std::string of_all_on_one_node() const {
    const NodeMask matching = search.matching_all();
    const size_t count = search.wanting().size();
    if ((matching & labelled).empty()) {
      std::set<size_t> kinds;
      for (size_t bundle : search.wanting()) kinds.insert(set.kind_of[bundle]);
      proto::LabelSelector all;
      for (size_t kind : kinds) all.MergeFrom(set.kinds[kind].selector);
      return fmt::format(
          "no node has the labels that its {} bundles ask for together (STRICT_PACK): there is not "
          "{}",
          count, text_of(all));
    }
    ResourceSet sum;
    for (size_t bundle : search.wanting()) sum.add(set.resources(bundle));
    return nearest_lacks(
        fmt::format("its {} bundles together {} {} (STRICT_PACK)", count, text_of(sum),
                    infeasible ? "fit on no node" : "find no room on one node now"),
        matching & search.kept_together() & eligible, sum,
        [&](NodeSlot node) { return search.lacking_for_all(node); });
  }

  std::string all_bundles() const {
    if (set.strategy == proto::GroupSpec::STRICT_PACK) return of_all_on_one_node();
    if (set.strategy == proto::GroupSpec::STRICT_SPREAD)
      return fmt::format(
          "its {} bundles need as many different nodes (STRICT_SPREAD), and there are not enough "
          "nodes {}: {} {}",
          set.size(), infeasible ? "that are large enough" : "with room now", eligible.size(),
          infeasible ? "live" : "take new work");
    const bool parts = std::any_of(set.kinds.begin(), set.kinds.end(), [](const auto& kind) {
      return kind.resources.units("GPU") % ResourceSet::kUnit != 0;
    });
    const std::string fits = infeasible ? "fits on a node" : "finds room on a node now";
    const std::string hint = parts ? fmt::format("; {}", kGpuParts) : "";
    const size_t count = search.wanting().size();
    if (count == 1)
      return fmt::format("bundle {} {}, but not together with the bundles that have one{}",
                         search.wanting()[0], fits, hint);
    return fmt::format("each of its bundles {}, but not all {} of them together{}", fits, count,
                       hint);
  }
};

// Returns the labels, among those whose values must be the same, that no node has; or all of them
// when no node has all.
std::vector<std::string> absent(const BundleSet& set, const Nodes& nodes,
                                const NodeMask& labelled) {
  std::vector<std::string> labels;
  for (const std::string& label : set.same_label) {
    if (nodes.by_value(label).empty()) labels.push_back(label);
  }
  if (labels.empty() && labelled.empty()) labels = set.same_label;
  return labels;
}

}  // namespace

std::string shortened(std::string text) {
  constexpr size_t kMost = 300;
  if (text.size() <= kMost) return text;
  size_t end = kMost;
  // A character is not cut apart.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text + "…";
}

BundleShortage explain_bundles(const BundleSet& set, const BundleNodes& kept, const Nodes& nodes,
                               const std::function<std::string(const NodeId&)>& name_of) {
  BundleShortage shortage;
  if (assign_bundles(set, kept, nodes, Amount::kFree)) return shortage;
  shortage.infeasible = !assign_bundles(set, kept, nodes, Amount::kTotal);
  proto::LabelSelector same_label;
  for (const std::string& label : set.same_label) {
    proto::LabelRule& rule = *same_label.add_rules();
    rule.set_key(label);
    rule.set_op(proto::LabelRule::EXISTS);
  }
  const NodeMask labelled = nodes.matching(same_label);
  const std::vector<std::string> no_node_has = absent(set, nodes, labelled);
  if (!no_node_has.empty() && nodes.size() > 0) {
    const bool one = no_node_has.size() == 1;
    shortage.why = fmt::format(
        "no node has the label{} {}, and all of its nodes must have the same value of {}",
        one ? "" : "s", fmt::join(no_node_has, " and "), one ? "it" : "each");
    return shortage;
  }
  const Amount amount = shortage.infeasible ? Amount::kTotal : Amount::kFree;
  const RefusedGpus nothing_refused;
  const BundleSearch search(set, kept, nodes, amount, nothing_refused);
  const NodeMask eligible = labelled & (shortage.infeasible ? nodes.all() : nodes.open());
  const Explanation explanation{set,    nodes, search, labelled, eligible, shortage.infeasible,
                                name_of};
  shortage.why = explanation.one_bundle();
  if (shortage.why.empty()) shortage.why = explanation.all_bundles();
  if (!set.same_label.empty())
    shortage.why += fmt::format("; all of its nodes must have the same value of {}",
                                fmt::join(set.same_label, " and of "));
  return shortage;
}

}  // namespace rt::scheduling
