// proto::Node as the public API shows it: keys, order and values of ray.nodes() entries and of the
// resource dicts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/api_json/object.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"

namespace rt::api_json {

// One entry of ray.nodes(). Ports that this release does not have are 0; a dead node has no
// resources.
Json node_json(const proto::Node& node);
// Parts of it: the resources, the labels with the node's id (in hex) among them, and the name,
// which is the address of a node that was given none.
Json node_resources_json(const proto::Node& node);
Json node_labels_json(const proto::Node& node, const std::string& node_id);
const std::string& node_name(const proto::Node& node);

// `nodes`: any sequence of proto::Node.
template <class Nodes>
Json nodes_json(const Nodes& nodes) {
  Json json = Json::array();
  for (const proto::Node& node : nodes) json.push_back(node_json(node));
  return json;
}

// Resources by name: {"CPU": 2.0}.
Json amounts_json(const ResourceSet& resources);
Json amounts_json(const proto::Resources& resources);

enum class Amount { kTotal, kAvailable };
// Sum over alive nodes, by name: ray.cluster_resources() or ray.available_resources(). What is
// fully used is absent.
template <class Nodes>
Json resources_json(const Nodes& nodes, Amount amount) {
  ResourceSet sum;
  for (const proto::Node& node : nodes) {
    if (node.alive())
      sum.add(ResourceSet::from_proto(amount == Amount::kTotal ? node.total() : node.available()));
  }
  return amounts_json(sum);
}

// Nodes tell the port of their GET /metrics with a label of the cluster's own, which is not shown
// among their labels.
inline constexpr char kMetricsPortLabel[] = "ray.io/metrics-export-port";
int metrics_port(const proto::Node& node);  // 0: it has none

// [{"labels": {"job": "ray"}, "targets": [...]}], the targets of Prometheus: the endpoints of the
// living nodes, and the head's own if it has one. `https`: all of them speak TLS, which Prometheus
// learns from one more label, "__scheme__".
Json discovery_json(const std::vector<proto::Node>& nodes, const std::string& head_http_address,
                    bool https);

}  // namespace rt::api_json
