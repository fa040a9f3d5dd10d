#include "observability/api_json/node_json.h"

#include <cstdlib>
#include <map>
#include <string_view>

#include "common/base/ids.h"
#include "observability/api_json/metrics_targets.h"

namespace rt::api_json {
namespace {

constexpr const char* kNodeIdLabel = "ray.io/node-id";

}  // namespace

Json amounts_json(const ResourceSet& resources) {
  Json::object_t json;
  // Members are appended without looking for equal names: a large cluster has one resource
  // "node:IP" for each node, and the search would take quadratic time.
  json.reserve(resources.all().size());
  for (const auto& [name, units] : resources.all())
    json.emplace_back(name, static_cast<double>(units) / ResourceSet::kUnit);
  return json;
}
Json amounts_json(const proto::Resources& resources) {
  return amounts_json(ResourceSet::from_proto(resources));
}

Json node_resources_json(const proto::Node& node) {
  return node.alive() ? amounts_json(node.total()) : Json::object();
}

Json node_labels_json(const proto::Node& node, const std::string& node_id) {
  std::map<std::string_view, std::string_view> labels(node.labels().begin(), node.labels().end());
  labels[kNodeIdLabel] = node_id;
  labels.erase(kMetricsPortLabel);
  Json::object_t json;
  json.reserve(labels.size());
  for (const auto& [name, value] : labels) json.emplace_back(name, value);
  return json;
}

const std::string& node_name(const proto::Node& node) {
  return node.name().empty() ? node.ip() : node.name();
}

Json node_json(const proto::Node& node) {
  std::string node_id = to_hex(node.node_id());
  return object_of({{"NodeID", node_id},
                    {"Alive", node.alive()},
                    {"NodeManagerAddress", node.ip()},
                    {"NodeManagerHostname", node.hostname()},
                    {"NodeManagerPort", node.port()},
                    // All processes of a node are reached through its one port.
                    {"ObjectManagerPort", node.port()},
                    {"ObjectStoreSocketName", node.object_store_socket()},
                    {"RayletSocketName", node.node_manager_socket()},
                    {"MetricsExportPort", metrics_port(node)},
                    {"MetricsAgentPort", 0},
                    {"DashboardAgentListenPort", 0},
                    {"NodeName", node_name(node)},
                    {"RuntimeEnvAgentPort", 0},
                    {"DeathReason", static_cast<int>(node.death_reason())},
                    {"DeathReasonMessage", node.death_message()},
                    {"alive", node.alive()},
                    {"Resources", node_resources_json(node)},
                    {"Labels", node_labels_json(node, node_id)}});
}

}  // namespace rt::api_json
