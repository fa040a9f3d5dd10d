// Metrics of user programs as Prometheus text.
//
// `requests` is ray_requests_total when it is a counter, else ray_requests; a histogram gives
// ray_<name>_bucket, _sum and _count. Every sample has the labels SessionName, Version,
// NodeAddress, Component and WorkerId ("" for the sum over processes that ended) before its own
// tags.
#pragma once

#include <span>
#include <string>

#include "common/metrics/exposition.h"
#include "common/proto/node_manager.pb.h"

namespace rt::metrics {

struct NodeMetrics {
  std::string session_name, version, node_address;
  proto::MetricsReply metrics;
};

// Two metrics of one name and different kinds: the kind that comes first is written, the others are
// not. `out` has no common labels.
void add_user_metrics(const NodeMetrics& node, Exposition* out);
std::string prometheus_text(std::span<const NodeMetrics> nodes);

}  // namespace rt::metrics
