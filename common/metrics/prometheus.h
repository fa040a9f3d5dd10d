// Metrics of nodes as Prometheus text (exposition format 0.0.4).
//
// `requests` is ray_requests_total when it is a counter, else ray_requests; a histogram gives ray_<name>_bucket, _sum and _count.
// Every sample has the labels SessionName, Version, NodeAddress, Component and WorkerId ("" for the sum over processes that ended)
// before its own tags.
#pragma once

#include <span>
#include <string>

#include "common/proto/node_manager.pb.h"

namespace rt::metrics {

struct NodeMetrics {
  std::string session_name, version, node_address;
  proto::MetricsReply metrics;
};

// A metric name is written once with its type, the samples of all nodes under it. Two metrics of one name and different kinds: the kind that
// comes first is written, the others are not.
std::string prometheus_text(std::span<const NodeMetrics> nodes);

}  // namespace rt::metrics
