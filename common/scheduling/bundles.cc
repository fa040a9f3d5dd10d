#include "common/scheduling/bundles.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "common/scheduling/bundle_search.h"
#include "common/scheduling/constraint.h"

namespace rt::scheduling {
namespace {

void append_text(std::string& key, std::string_view text) {
  key += fmt::format("{}:", text.size());
  key += text;
}

std::string key_of(const BundleSet::Kind& kind) {
  std::string key;
  for (const auto& [name, units] : kind.resources.all()) {
    append_text(key, name);
    key += fmt::format("{},", units);
  }
  if (kind.selector.rules_size() > 0) append_text(key, kind.selector.SerializeAsString());
  return key;
}

// Calls `visit` with each set of nodes that have one value of each label, until it returns true.
bool visit_topologies(const Nodes& nodes, const std::vector<std::string>& labels, size_t at,
                      const NodeMask& eligible, const std::function<bool(const NodeMask&)>& visit) {
  if (eligible.empty()) return false;
  if (at == labels.size()) return visit(eligible);
  for (const auto& [value, members] : nodes.by_value(labels[at])) {
    if (visit_topologies(nodes, labels, at + 1, eligible & members, visit)) return true;
  }
  return false;
}

constexpr size_t kKindsSeenAtOnce = 4;

// Returns whether all bundles of a kind have a node.
bool nobody_wants(const BundleSet& set, const BundleNodes& kept, size_t kind) {
  for (size_t bundle = 0; bundle < kept.size(); ++bundle) {
    if (set.kind_of[bundle] == kind && kept[bundle] == kNoNode) return false;
  }
  return true;
}

bool all_in(const BundleNodes& kept, const NodeMask& nodes) {
  return std::all_of(kept.begin(), kept.end(),
                     [&](NodeSlot node) { return node == kNoNode || nodes.contains(node); });
}

}  // namespace

BundleSet::BundleSet(const proto::GroupSpec& spec) : strategy(spec.strategy()) {
  std::map<std::string, size_t> known;
  key = fmt::format("{}", static_cast<int>(strategy));
  for (const proto::BundleSpec& bundle : spec.bundles()) {
    Kind kind{ResourceSet::from_proto(bundle.resources()), bundle.selector()};
    std::string of_kind = key_of(kind);
    auto [at, added] = known.try_emplace(of_kind, kinds.size());
    if (added) {
      kinds.push_back(std::move(kind));
      key += '|';
      key += of_kind;
    }
    kind_of.push_back(at->second);
  }
  if (kinds.size() > 1) {
    key += '#';
    for (size_t kind : kind_of) key += fmt::format("{},", kind);
  } else {
    key += fmt::format("#{}", kind_of.size());
  }
  if (NodeId::is_valid(spec.soft_target_node_id())) {
    soft_target = NodeId::from_binary(spec.soft_target_node_id());
    append_text(key, spec.soft_target_node_id());
  }
  for (const auto& [label, how] : spec.topology_strategy()) same_label.push_back(label);
  std::sort(same_label.begin(), same_label.end());
  for (const std::string& label : same_label) append_text(key, label);
}

std::optional<BundleNodes> assign_bundles(const BundleSet& set, const BundleNodes& kept,
                                          const Nodes& nodes, Amount amount,
                                          const RefusedGpus& refused) {
  const NodeMask& eligible = amount == Amount::kTotal ? nodes.all() : nodes.open();
  // Most of the sets that find no room are recognised here, without a search.
  for (size_t kind = 0; kind < set.kinds.size() && kind < kKindsSeenAtOnce; ++kind) {
    const bool kept_all = !kept.empty() && nobody_wants(set, kept, kind);
    if (!kept_all && (nodes.having(set.kinds[kind].resources, amount) & eligible).empty())
      return std::nullopt;
  }
  BundleSearch search(set, kept, nodes, amount, refused);
  if (set.same_label.empty()) return search.run(eligible);
  std::optional<BundleNodes> found;
  // The nodes that keep bundles decide the values, even if they take nothing new.
  visit_topologies(nodes, set.same_label, 0, nodes.all(), [&](const NodeMask& alike) {
    if (all_in(kept, alike)) found = search.run(alike & eligible);
    return found.has_value();
  });
  return found;
}

}  // namespace rt::scheduling
