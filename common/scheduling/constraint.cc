#include "common/scheduling/constraint.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/base/ids.h"

namespace rt::scheduling {
namespace {

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

AllowedNodes allowed_nodes(const proto::NodeConstraint& c, const ResourceSet& request,
                           const Nodes& nodes) {
  using Verdict = AllowedNodes::Verdict;
  AllowedNodes out;
  const NodeMask large_enough = nodes.having(request, Amount::kTotal);
  NodeSlot wanted = kNoNode;
  if (!c.node_id().empty()) {
    const NodeSlot named =
        NodeId::is_valid(c.node_id()) ? nodes.find(NodeId::from_binary(c.node_id())) : kNoNode;
    if (large_enough.contains(named)) wanted = named;
    if (wanted == kNoNode && !c.soft()) {
      out.verdict = named == kNoNode ? Verdict::kGone : Verdict::kTooSmall;
      return out;
    }
    if (wanted != kNoNode && !c.spill_on_unavailable()) {
      out.verdict = Verdict::kSome;
      out.nodes.add(wanted);
      out.preferred.add(wanted);
      return out;
    }
  }
  out.nodes = nodes.matching(c.hard()) & large_enough;
  for (int i = 0; out.nodes.empty() && i < c.fallbacks_size(); ++i)
    out.nodes = nodes.matching(c.fallbacks(i)) & large_enough;
  if (c.preferred().rules_size() > 0) out.preferred = nodes.matching(c.preferred());
  if (wanted != kNoNode) out.preferred.add(wanted);
  out.preferred &= out.nodes;
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

}  // namespace rt::scheduling
