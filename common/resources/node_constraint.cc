#include "common/resources/node_constraint.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/ids.h"

namespace rt {
namespace {

bool holds(const proto::LabelRule& rule, const Labels& labels) {
  auto label = labels.find(rule.key());
  bool there = label != labels.end();
  bool listed = there && std::find(rule.values().begin(), rule.values().end(), label->second) !=
                             rule.values().end();
  switch (rule.op()) {
    case proto::LabelRule::IN: return listed;
    case proto::LabelRule::NOT_IN: return !listed;
    case proto::LabelRule::EXISTS: return there;
    case proto::LabelRule::DOES_NOT_EXIST: return !there;
    default: return false;  // an operator of a later release: no node is known to satisfy it
  }
}

// Indexes of the nodes that match and whose total resources suffice.
std::vector<int> matching(const proto::LabelSelector& selector, const ResourceSet& request,
                          std::span<const NodeFacts> nodes) {
  std::vector<int> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].total->contains(request) && matches(selector, *nodes[i].labels))
      found.push_back(static_cast<int>(i));
  }
  return found;
}

std::string describe(const proto::LabelSelector& selector) {
  std::vector<std::string> parts;
  for (const proto::LabelRule& rule : selector.rules()) {
    std::string values = fmt::format("({})", fmt::join(rule.values(), ", "));
    switch (rule.op()) {
      case proto::LabelRule::IN:
        parts.push_back(fmt::format("{} is in {}", rule.key(), values));
        break;
      case proto::LabelRule::NOT_IN:
        parts.push_back(fmt::format("{} is not in {}", rule.key(), values));
        break;
      case proto::LabelRule::EXISTS: parts.push_back(rule.key() + " exists"); break;
      default: parts.push_back(rule.key() + " does not exist");
    }
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace

bool constrains(const proto::NodeConstraint& c) {
  return !c.node_id().empty() || c.hard().rules_size() > 0 || c.preferred().rules_size() > 0 ||
         c.fallbacks_size() > 0;
}

bool matches(const proto::LabelSelector& selector, const Labels& labels) {
  return std::all_of(selector.rules().begin(), selector.rules().end(),
                     [&](const proto::LabelRule& rule) { return holds(rule, labels); });
}

AllowedNodes allowed_nodes(const proto::NodeConstraint& c, const ResourceSet& request,
                           std::span<const NodeFacts> nodes) {
  using Verdict = AllowedNodes::Verdict;
  AllowedNodes out;
  int wanted = -1;
  if (!c.node_id().empty()) {
    auto at = std::find_if(nodes.begin(), nodes.end(),
                           [&](const NodeFacts& node) { return node.id == c.node_id(); });
    if (at != nodes.end() && at->total->contains(request))
      wanted = static_cast<int>(at - nodes.begin());
    if (wanted < 0 && !c.soft()) {
      out.verdict = at == nodes.end() ? Verdict::kGone : Verdict::kTooSmall;
      return out;
    }
    if (wanted >= 0 && !c.spill_on_unavailable()) return {Verdict::kSome, {wanted}, 1};
  }
  out.nodes = matching(c.hard(), request, nodes);
  for (int i = 0; out.nodes.empty() && i < c.fallbacks_size(); ++i)
    out.nodes = matching(c.fallbacks(i), request, nodes);
  auto first = [&](int i) {
    return i == wanted ||
           (c.preferred().rules_size() > 0 && matches(c.preferred(), *nodes[i].labels));
  };
  auto rest = std::stable_partition(out.nodes.begin(), out.nodes.end(), first);
  out.preferred = static_cast<size_t>(rest - out.nodes.begin());
  out.verdict = out.nodes.empty() ? Verdict::kNoneYet : Verdict::kSome;
  return out;
}

std::string describe(const proto::NodeConstraint& c) {
  if (!c.node_id().empty()) return "node " + to_hex(c.node_id());
  std::string text = c.hard().rules_size() > 0 ? "a node where " + describe(c.hard()) : "any node";
  for (const proto::LabelSelector& selector : c.fallbacks())
    text += ", or where " + describe(selector);
  return text;
}

std::string where_of(const proto::NodeConstraint* constraint) {
  const bool excludes =
      constraint &&
      (constraint->node_id().empty() ? constraint->hard().rules_size() > 0 : !constraint->soft());
  return excludes ? describe(*constraint) : "";
}

}  // namespace rt
