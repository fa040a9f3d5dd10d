// Writes metrics of user programs as Prometheus text.
//
// A metric `requests` becomes ray_requests_total if it is a counter, otherwise ray_requests; a
// histogram yields ray_<name>_bucket, _sum and _count. Every sample has the labels SessionName,
// Version, NodeAddress, Component and WorkerId in front of its own tags. WorkerId is empty for the
// sum over processes that have ended.
#pragma once

#include <span>
#include <string>

#include "common/proto/node_manager.pb.h"
#include "observability/metrics/exposition.h"

namespace rt::metrics {

struct NodeMetrics {
  std::string session_name, version, node_address;
  proto::MetricsReply metrics;
};

// Adds the metrics of one node to `out`, which must have no common labels. If metrics of the same
// name have different kinds, only those of the first kind are written.
void add_user_metrics(const NodeMetrics& node, Exposition* out);
// The metrics of all these nodes as one text.
std::string prometheus_text(std::span<const NodeMetrics> nodes);

}  // namespace rt::metrics
