// One node's figures as Prometheus text, with the names and labels of docs/metrics.md. Nothing is
// asked here: what was found out comes in.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/metrics/process.h"
#include "common/proto/metrics.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/object_store.pb.h"
#include "daemons/node_manager/process/host_stats.h"

namespace rt::node {

struct NodeScrape {
  std::string session_name, version, node_ip, node_id_hex;
  proto::HostStats before, now;  // two readings: what is between them makes percentages and speeds
  std::map<int, metrics::ProcessDetail> details;  // by process id
  proto::ProcessesReply processes;
  proto::NodeFigures node;
  int store_pid = 0;                       // 0: not known
  std::optional<proto::StoreStats> store;  // none: it did not answer, or the node has none
  proto::MetricsReply programs;            // what user programs count
};

std::string node_metrics_text(const NodeScrape& scrape);

}  // namespace rt::node
