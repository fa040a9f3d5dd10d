// proto::Node as the public API shows it: keys, order and values of ray.nodes() entries and of the resource dicts.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "common/proto/common.pb.h"

namespace rt::api_json {

using Json = nlohmann::ordered_json;

// One entry of ray.nodes(). Ports that this release does not have are 0; a dead node has no resources.
Json node_json(const proto::Node& node);
Json nodes_json(const std::vector<proto::Node>& nodes);

// Resources by name: {"CPU": 2.0}.
Json amounts_json(const proto::Resources& resources);

enum class Amount { kTotal, kAvailable };
// Sum over alive nodes, by name: ray.cluster_resources() or ray.available_resources(). What is fully used is absent.
Json resources_json(const std::vector<proto::Node>& nodes, Amount amount);

// Nodes tell the port of their GET /metrics with a label of the cluster's own, which is not shown among their labels.
inline constexpr char kMetricsPortLabel[] = "ray.io/metrics-export-port";
int metrics_port(const proto::Node& node);      // 0: it has none

// [{"labels": {"job": "ray"}, "targets": [...]}], the targets of Prometheus: the endpoints of the living nodes, and the head's own if it has one. `https`: all of them
// speak TLS, which Prometheus learns from one more label, "__scheme__".
Json discovery_json(const std::vector<proto::Node>& nodes, const std::string& head_http_address, bool https);

}  // namespace rt::api_json
