#include "observability/state/groups.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/ids.h"
#include "observability/api_json/node_json.h"

namespace rt::state {
namespace {

// A group may have bundles of thousands of different sizes: a text names the first ones.
constexpr size_t kMostShapes = 8;
constexpr size_t kMostRanges = 5;

constexpr int64_t kNanosecondsPerMs = 1'000'000, kNanosecondsPerUs = 1'000;

// The rule as programs write it: "v", "!v", "in(a,b)", "!in(a,b)".
std::string rule_text(const proto::LabelRule& rule) {
  using Rule = proto::LabelRule;
  std::string values;
  for (const std::string& value : rule.values()) values += (values.empty() ? "" : ",") + value;
  switch (rule.op()) {
    case Rule::IN: return rule.values_size() == 1 ? values : "in(" + values + ")";
    case Rule::NOT_IN: return rule.values_size() == 1 ? "!" + values : "!in(" + values + ")";
    case Rule::EXISTS: return "exists()";
    default: return "!exists()";
  }
}

Json selector_json(const proto::LabelSelector& selector) {
  Json out = Json::object();
  for (const auto& rule : selector.rules()) out[rule.key()] = rule_text(rule);
  return out;
}

const std::string& node_of(const proto::GroupInfo& group, int bundle) {
  static const std::string kNone;
  return bundle < group.bundle_nodes_size() ? group.bundle_nodes(bundle) : kNone;
}

// Says what the head does about a group, by the names of Ray's statistics.
const char* scheduling_state(const proto::GroupInfo& group) {
  switch (group.state()) {
    case proto::GROUP_CREATED: return "FINISHED";
    case proto::GROUP_REMOVED: return "REMOVED";
    case proto::GROUP_PREPARED: return "SCHEDULING_STARTED";
    default: break;
  }
  if (group.infeasible()) return "INFEASIBLE";
  // The head gives a reason as long as it has found no nodes.
  if (!group.why().empty()) return "NO_RESOURCES";
  return group.attempts() > 0 ? "SCHEDULING_STARTED" : "QUEUED";
}

// Numbers of 64 bits are texts and 0 is not known yet, as in Ray. The head looks for nodes whenever
// something has changed, so there is no delay that grows.
Json stats_json(const proto::GroupInfo& group) {
  const int64_t received_ns = group.created_ms() * kNanosecondsPerMs;
  const int64_t waited_us = std::max<int64_t>(0, group.placed_us() - group.scheduling_us());
  const int64_t started_ns =
      group.placed_us() > 0 ? received_ns + waited_us * kNanosecondsPerUs : 0;
  return {{"creation_request_received_ns", std::to_string(received_ns)},
          {"scheduling_started_time_ns", std::to_string(started_ns)},
          {"scheduling_latency_us", std::to_string(group.scheduling_us())},
          {"end_to_end_creation_latency_us", std::to_string(group.placed_us())},
          {"scheduling_attempt", group.attempts()},
          {"highest_retry_delay_ms", 0.0},
          {"scheduling_state", scheduling_state(group)}};
}

Json bundles_json(const proto::GroupInfo& group, const std::string& group_hex) {
  Json bundles = Json::array();
  for (int i = 0; i < group.spec().bundles_size(); ++i) {
    const proto::BundleSpec& bundle = group.spec().bundles(i);
    bundles.push_back({{"bundle_id", {{"placement_group_id", group_hex}, {"bundle_index", i}}},
                       {"unit_resources", api_json::amounts_json(bundle.resources())},
                       {"node_id", to_hex(node_of(group, i))},
                       {"label_selector", selector_json(bundle.selector())}});
  }
  return bundles;
}

// The value that the labels of the topology have on the nodes of the group; none before it is
// placed, or when its nodes are not known any more.
Json topology_assignments(const proto::GroupInfo& group, const NodesById& nodes) {
  Json out = Json::object();
  for (const auto& [label, strategy] : group.spec().topology_strategy()) {
    for (const std::string& id : group.bundle_nodes()) {
      auto node = nodes.find(NodeId::from_binary(id));
      if (node == nodes.end()) continue;
      if (auto value = node->second->labels().find(label); value != node->second->labels().end())
        out[label] = value->second;
    }
  }
  return out;
}

}  // namespace

std::string group_state_name(proto::GroupState state) {
  constexpr std::string_view kPrefix = "GROUP_";
  return proto::GroupState_Name(state).substr(kPrefix.size());
}

std::string strategy_name(const proto::GroupSpec& spec) {
  return proto::GroupSpec::Strategy_Name(spec.strategy());
}

NodesById nodes_by_id(const google::protobuf::RepeatedPtrField<proto::Node>& nodes) {
  NodesById out;
  for (const proto::Node& node : nodes) {
    if (node.alive()) out[NodeId::from_binary(node.node_id())] = &node;
  }
  return out;
}

Json group_row(const proto::GroupInfo& group, const NodesById& nodes, bool detail) {
  const proto::GroupSpec& spec = group.spec();
  const std::string id = to_hex(spec.group_id());
  Json row = {{"placement_group_id", id},
              {"name", spec.name()},
              {"creator_job_id", to_hex(spec.job_id())},
              {"state", group_state_name(group.state())},
              {"is_detached", spec.detached()}};
  if (!detail) return row;
  row["bundles"] = bundles_json(group, id);
  row["stats"] = stats_json(group);
  row["topology_strategy"] = Json::object();
  for (const auto& [label, strategy] : spec.topology_strategy())
    row["topology_strategy"][label] = strategy;
  row["topology_assignments"] = topology_assignments(group, nodes);
  row["strategy"] = strategy_name(spec);
  row["why"] = optional_text(group.why());
  return row;
}

std::vector<BundleShape> bundle_shapes(const proto::GroupInfo& group, bool only_homeless) {
  std::vector<BundleShape> shapes;
  std::map<ResourceSet, size_t> known;
  for (int i = 0; i < group.spec().bundles_size(); ++i) {
    if (only_homeless && !node_of(group, i).empty()) continue;
    ResourceSet resources = ResourceSet::from_proto(group.spec().bundles(i).resources());
    auto [it, added] = known.try_emplace(resources, shapes.size());
    if (added) shapes.push_back({std::move(resources), 0});
    ++shapes[it->second].count;
  }
  return shapes;
}

std::string homeless_text(const proto::GroupInfo& group) {
  const std::vector<BundleShape> shapes = bundle_shapes(group, true);
  std::string text;
  for (size_t i = 0; i < std::min(shapes.size(), kMostShapes); ++i)
    text +=
        fmt::format("{}{} * {}", i ? ", " : "", shapes[i].resources.to_string(), shapes[i].count);
  if (shapes.size() > kMostShapes)
    text += fmt::format(" and {} more sizes", shapes.size() - kMostShapes);
  return fmt::format("{} ({})", text, strategy_name(group.spec()));
}

std::string group_title(const proto::GroupInfo& group) {
  const std::string id = to_hex(group.spec().group_id());
  return group.spec().name().empty()
             ? "placement group " + id
             : fmt::format("placement group '{}' ({})", group.spec().name(), id);
}

std::string removal_text(const proto::GroupInfo& group) {
  constexpr std::string_view kRemoved = "it was removed";
  if (group.why().empty()) return std::string(kRemoved);
  return group.why().starts_with(kRemoved) ? group.why()
                                           : fmt::format("{}: {}", kRemoved, group.why());
}

BundlePlaces places_of(const proto::GroupInfo& group) {
  BundlePlaces places;
  for (int i = 0; i < group.spec().bundles_size(); ++i) {
    const std::string& node = node_of(group, i);
    (node.empty() ? places.homeless : places.by_node[NodeId::from_binary(node)]).push_back(i);
  }
  return places;
}

std::string bundles_text(const std::vector<int>& indexes) {
  std::string text;
  size_t ranges = 0, named = 0;
  for (size_t from = 0, to; from < indexes.size() && ranges < kMostRanges; from = to, ++ranges) {
    for (to = from + 1; to < indexes.size() && indexes[to] == indexes[to - 1] + 1;) ++to;
    text += fmt::format("{}{}", ranges ? ", " : "", indexes[from]);
    if (to - from > 1) text += fmt::format("-{}", indexes[to - 1]);
    named = to;
  }
  if (named < indexes.size()) text += fmt::format(" and {} more", indexes.size() - named);
  return fmt::format("bundle{} {}", indexes.size() == 1 ? "" : "s", text);
}

}  // namespace rt::state
