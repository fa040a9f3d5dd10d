// Training runs (ray.train). The controller of a run records it as JSON in the head's key-value
// store (python/ray/train/records.py), so that it can be seen while it runs and afterwards.
#pragma once

#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "observability/state/query.h"

namespace rt::state {

// The namespaces of the key-value store; keys are ids of runs.
inline constexpr char kTrainRuns[] = "train_runs", kTrainMetrics[] = "train_metrics";

// Returns {"train_runs": [run, ...]}, the newest first. A run is as its controller has recorded it:
// id, name, job_id, status, start_time_ns, attempts with their workers, and so on. A run whose
// controller has ended without saying how is ABORTED. Blocks for at most `timeout_us`, and fails if
// the head does not answer.
Result<Answer> train_runs(const Cluster& cluster, int64_t timeout_us);
// Returns one run, the one of this id. Returns kNotFound if it is not known.
Result<Answer> train_run(const Cluster& cluster, const std::string& run_id, int64_t timeout_us);
// Returns what the run has reported over time:
// {"time_ms": [...], "reports": [...], "metrics": {name: [...]}, "ranks": [{...}, ...]}.
// All are empty if it has reported nothing yet. Returns kNotFound if the run is not known.
Result<Answer> train_metrics(const Cluster& cluster, const std::string& run_id, int64_t timeout_us);

// The parts of train_runs() without connections.
//
// A record of the store; null if it is none. All that the functions below read has its type then.
Json parse_train_run(const std::string& text);
// Whether the run says that it has not ended.
bool is_under_way(const Json& run);
// Ends a run that is under way if its controller, as the head knows it, is dead or unknown.
void settle_train_run(const proto::GetActorReply& controller, Json* run);
Json newest_first(std::vector<Json> runs);

// The newest run of this name, or the run of this id (its beginning is enough if only one run has
// it); null if there is none.
const Json* find_train_run(const Json& runs, const std::string& word);

}  // namespace rt::state
