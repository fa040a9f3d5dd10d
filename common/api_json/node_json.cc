#include "common/api_json/node_json.h"

#include <cstdlib>

#include "common/base/ids.h"
#include "common/resources/resource_set.h"

namespace rt::api_json {
namespace {

constexpr const char* kNodeIdLabel = "ray.io/node-id";

Json amounts(const ResourceSet& set) {
  Json json = Json::object();
  for (const auto& [name, units] : set.all()) json[name] = static_cast<double>(units) / ResourceSet::kUnit;
  return json;
}

Json labels_of(const proto::Node& node, const std::string& node_id) {
  std::map<std::string, std::string> labels(node.labels().begin(), node.labels().end());
  labels[kNodeIdLabel] = node_id;
  labels.erase(kMetricsPortLabel);
  Json json = Json::object();
  for (const auto& [name, value] : labels) json[name] = value;
  return json;
}

}  // namespace

Json amounts_json(const proto::Resources& resources) { return amounts(ResourceSet::from_proto(resources)); }

int metrics_port(const proto::Node& node) {
  auto label = node.labels().find(kMetricsPortLabel);
  return label == node.labels().end() ? 0 : std::atoi(label->second.c_str());
}

Json node_json(const proto::Node& node) {
  std::string node_id = to_hex(node.node_id());
  return {{"NodeID", node_id},
          {"Alive", node.alive()},
          {"NodeManagerAddress", node.ip()},
          {"NodeManagerHostname", node.hostname()},
          {"NodeManagerPort", node.port()},
          {"ObjectManagerPort", node.port()},       // one port is the front door of all of a node's processes
          {"ObjectStoreSocketName", node.object_store_socket()},
          {"RayletSocketName", node.node_manager_socket()},
          {"MetricsExportPort", metrics_port(node)},
          {"MetricsAgentPort", 0},
          {"DashboardAgentListenPort", 0},
          {"NodeName", node.name().empty() ? node.ip() : node.name()},
          {"RuntimeEnvAgentPort", 0},
          {"DeathReason", node.death_reason()},
          {"DeathReasonMessage", node.death_message()},
          {"alive", node.alive()},
          {"Resources", node.alive() ? amounts_json(node.total()) : Json::object()},
          {"Labels", labels_of(node, node_id)}};
}

Json nodes_json(const std::vector<proto::Node>& nodes) {
  Json json = Json::array();
  for (const auto& node : nodes) json.push_back(node_json(node));
  return json;
}

Json discovery_json(const std::vector<proto::Node>& nodes, const std::string& head_http_address, bool https) {
  Json targets = Json::array();
  for (const auto& node : nodes) {
    if (!node.alive() || metrics_port(node) == 0) continue;
    bool bracketed = node.ip().find(':') != std::string::npos;
    targets.push_back((bracketed ? "[" + node.ip() + "]:" : node.ip() + ":") + std::to_string(metrics_port(node)));
  }
  if (!head_http_address.empty()) targets.push_back(head_http_address);
  Json group = {{"labels", {{"job", "ray"}}}};
  if (https) group["labels"]["__scheme__"] = "https";
  group["targets"] = std::move(targets);
  Json groups = Json::array();
  groups.push_back(std::move(group));
  return groups;
}

Json resources_json(const std::vector<proto::Node>& nodes, Amount amount) {
  ResourceSet sum;
  for (const auto& node : nodes) {
    if (node.alive()) sum.add(ResourceSet::from_proto(amount == Amount::kTotal ? node.total() : node.available()));
  }
  return amounts(sum);
}

}  // namespace rt::api_json
