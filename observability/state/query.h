// Lists and summaries of one resource of a cluster, as JSON. Every function opens its own
// connections, blocks until the sources have answered or `timeout_us` has passed, and may be called
// from any thread. An error means that the head could not be asked; other sources that did not
// answer are named in the answer ("partial_failure_warning").
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "observability/state/filter.h"
#include "observability/state/rows.h"

namespace rt::state {

inline constexpr int64_t kMaxLimit = 10'000;  // The most rows of one answer.

struct Query {
  std::string resource;  // The name of a resource in columns.h, such as "actors".
  std::vector<Filter> filters;
  int64_t limit = 100;
  bool detail = false;         // Include the columns that are marked `detail`.
  bool exclude_driver = true;  // Tasks only: leave out the pseudo-task of each driver.
  bool by_lineage = false;     // Summaries of tasks only: a tree by submitter, not by function.
  int64_t timeout_us = 30'000'000;
};

struct Cluster {
  std::string head_address;  // HOST:PORT
  std::string token;
  // The limit for the connection to the head and its hello together. A head that does not answer is
  // reported within three seconds, unless the caller allows more.
  int64_t connect_us = 2'500'000;
};

// Wraps a Json for Result<>: Json converts to and from too many types to be in a Result itself.
struct Answer {
  Json json;
};

// Returns {"total", "num_filtered", "num_after_truncation", "result": [rows],
// "partial_failure_warning": text or null, "warnings": [text] or null}. "total" counts rows before
// filtering (for tasks: after it), "num_filtered" rows that match, "num_after_truncation" rows in
// "result". Returns kInvalid for a bad limit, resource or filter; a bad filter is only noticed if
// there is at least one row.
Result<Answer> list(const Cluster& cluster, const Query& query);

// Returns {"summary": ..., totals, "partial_failure_warning"} for tasks, actors, objects or
// placement groups (bundles of removed groups are not counted). Only filters, by_lineage and
// timeout_us of `query` are used. A summary by lineage covers the newest kMaxLimit tasks; if there
// are more, "warnings" says so. Returns kInvalid for other resources.
Result<Answer> summarize(const Cluster& cluster, const Query& query);

// All nodes, dead ones included.
Result<std::vector<proto::Node>> nodes(const Cluster& cluster, int64_t timeout_us);

// Returns [{"node_id", "node_ip", "used", "capacity", "objects", "holders"}] for the object stores
// of living nodes; sizes are bytes. "holders" are the owners of the objects, the largest first:
// [{"worker_id", "pid", "bytes", "objects"}]. A store that did not answer in time has nulls there,
// and no holders. `missing` is set to one line for each of them.
Result<Answer> store_stats(const Cluster& cluster, int64_t timeout_us,
                           std::vector<std::string>* missing);

// Counts for the head's metrics: tasks, live ones and those of the history, and all known actors.
struct Census {
  struct Tasks {
    std::string name, state, job_hex;
    bool is_retry = false;
    int64_t count = 0;
  };
  std::vector<Tasks> tasks;
  std::vector<proto::ActorInfo> actors;
  std::set<ActorId> busy_actors;  // Actors that are running a method.
};
Result<Census> census(const Cluster& cluster, int64_t timeout_us);

// The user metrics that the node-managers of all living nodes have collected, as Prometheus text.
// `version` becomes a label. `missing` is set to one line for each node that did not answer.
Result<std::string> metrics_text(const Cluster& cluster, const std::string& version,
                                 int64_t timeout_us, std::vector<std::string>* missing);

}  // namespace rt::state
