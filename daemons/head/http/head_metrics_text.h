// Renders the cluster's figures as Prometheus text, with the names and labels of docs/metrics.md.
// Asks nothing: callers collect the figures.
#pragma once

#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "common/proto/metrics.pb.h"
#include "observability/state/query.h"

namespace rt::head {

struct ClusterScrape {
  // `version` and `address` are the head's.
  std::string session_name, version, address;
  std::vector<proto::Node> nodes;
  proto::GetJobsReply jobs;
  proto::ClusterStatusReply status;
  proto::ListGroupsReply groups;
  proto::HeadStats head;
  state::Census census;
  // The head's own process.
  int pid = 0, open_files = 0;
  double cpu_percent = 0;
  int64_t rss = 0, shared = 0, unique = 0;
};

std::string cluster_metrics_text(const ClusterScrape& scrape);

}  // namespace rt::head
