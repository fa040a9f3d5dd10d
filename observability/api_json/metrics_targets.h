// The Prometheus endpoints of nodes, and the list of them that Prometheus reads.
#pragma once

#include <string>
#include <vector>

#include "common/proto/common.pb.h"

namespace rt::api_json {

// Nodes report the port of their Prometheus endpoint in this internal label, which is not shown
// among their labels.
inline constexpr char kMetricsPortLabel[] = "ray.io/metrics-export-port";
// The port of the node's Prometheus endpoint; 0 if it has none.
int metrics_port(const proto::Node& node);

// Prometheus' file with targets, JSON in one line:
// [{"labels": {"job": "ray"}, "targets": [...]}]. Targets are the endpoints of living nodes, and
// the head's if `head_http_address` is not empty. With `https` all of them are scraped over TLS,
// which the label "__scheme__" tells Prometheus.
std::string metrics_targets(const std::vector<proto::Node>& nodes,
                            const std::string& head_http_address, bool https);

}  // namespace rt::api_json
