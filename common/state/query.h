// A question to a cluster: a list or a summary of one resource, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/state/filter.h"
#include "common/state/rows.h"

namespace rt::state {

inline constexpr int64_t kMaxLimit = 10'000;  // rows of one answer

struct Query {
  std::string resource;  // "actors"; see columns.h
  std::vector<Filter> filters;
  int64_t limit = 100;
  bool detail = false;
  bool exclude_driver = true;  // tasks: without the pseudo-tasks of drivers
  bool by_lineage = false;     // summaries of tasks: by who submitted whom, not by function
  int64_t timeout_us = 30'000'000;
};

struct Cluster {
  std::string head_address;  // HOST:PORT
  std::string token;
};

// A type of its own: Json converts to and from too much to be in a Result.
struct Answer {
  Json json;
};

// {"total", "num_filtered", "num_after_truncation", "result": [rows], "partial_failure_warning":
// text or null, "warnings": [text] or null} total: before filters (tasks: after them),
// num_filtered: after them, num_after_truncation: rows in `result`. kInvalid: limit, resource or
// filter. A filter is looked at once there is a row.
Result<Answer> list(const Cluster& cluster, const Query& query);

// {"summary": ..., totals, "partial_failure_warning"} of tasks, actors or objects; only filters,
// by_lineage and timeout_us of `query` matter. By lineage: of the newest kMaxLimit tasks;
// "warnings" says so when there are more.
Result<Answer> summarize(const Cluster& cluster, const Query& query);

// All nodes, dead ones included.
Result<std::vector<proto::Node>> nodes(const Cluster& cluster, int64_t timeout_us);

// [{"node_id", "node_ip", "used", "capacity", "objects"}] of the living nodes' object stores;
// bytes.
Result<Answer> store_stats(const Cluster& cluster, int64_t timeout_us);

// For metrics: tasks, those of the history among them, and all actors that are known.
struct Census {
  struct Tasks {
    std::string name, state, job_hex;
    bool is_retry = false;
    int64_t count = 0;
  };
  std::vector<Tasks> tasks;
  std::vector<proto::ActorInfo> actors;
  std::vector<std::string> busy_actors;  // binary ids: those that run a method
};
Result<Census> census(const Cluster& cluster, int64_t timeout_us);

// What the node-managers of all living nodes have of user metrics, as Prometheus text. `missing`:
// nodes that did not answer, one line each.
Result<std::string> metrics_text(const Cluster& cluster, const std::string& version,
                                 int64_t timeout_us, std::vector<std::string>* missing);

}  // namespace rt::state
