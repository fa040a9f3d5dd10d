// Formats one node's figures as Prometheus text, with the names and labels of docs/metrics.md.
// This is a pure function of its input; metrics_endpoint.cc collects the figures.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/proto/metrics.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/object_store.pb.h"
#include "daemons/node_manager/process/host_stats.h"
#include "observability/metrics/process.h"

namespace rt::node {

struct NodeScrape {
  std::string session_name, version, node_ip, node_id_hex;
  proto::HostStats before, now;  // two readings; percentages and rates are computed between them
  std::map<int, metrics::ProcessDetail> details;  // by process id
  proto::ProcessesReply processes;
  proto::NodeFigures node;
  std::optional<proto::StoreStats> store;  // empty if the store did not answer or there is none
  proto::MetricsReply programs;            // metrics of user programs
};

std::string node_metrics_text(const NodeScrape& scrape);

}  // namespace rt::node
