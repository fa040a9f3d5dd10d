// Profiles of training runs (python/ray/train/profiles): what is recorded of them in the head's
// key-value store, and the request for one, which the process of the run's controller executes.
#pragma once

#include <string>

#include "observability/state/query.h"

namespace rt::state {

// The namespaces of the key-value store; keys are ids of runs.
//
// The value is a JSON list of profiles, the newest last: id, status (RECORDING, RECORDED or
// FAILED), detail, time_ns, path, trace, log_file, node_id, steps, ranks, summary, memory.
inline constexpr char kTrainProfiles[] = "train_profiles";
// The value is a Viewer as JSON. The program that shows the profiles renews it while it runs.
inline constexpr char kTrainViewers[] = "train_tensorboards";

// A TensorBoard that shows the profiles of a run.
struct Viewer {
  std::string url;
  std::string owner;    // Tells one viewer of a run from the next.
  int64_t time_ms = 0;  // When it was renewed last, by the wall clock.
};
// A viewer is renewed this often, and is taken for gone if it was not renewed for so long. The
// difference leaves room for clocks that differ.
inline constexpr int64_t kViewerRenewedMs = 10'000, kViewerGoneMs = 45'000;
std::string viewer_text(const Viewer& viewer);
// The viewer of a value of the store; nothing if it is none, or is gone at `now_ms`.
Json living_viewer(const std::string& text, int64_t now_ms);

// Returns {"profiles": [...], "tensorboard": {"url", ...} or null}. The list is empty if the run
// has none. Returns kNotFound if the run is not known.
Result<Answer> train_profiles(const Cluster& cluster, const std::string& run_id,
                              int64_t timeout_us);
// Has a run (see train_runs.h) profiled, and returns the controller's answer, a JSON object.
// `request` has the fields of the command train_profile, all of them optional. Blocks until the
// profile is there, or as long as the request allows its steps to take. Errors: kInvalid if the run
// has ended or does not accept the request; kUnavailable if the controller is gone or ends during
// the request; kInternal, from the controller, if the profile fails.
Result<Answer> profile_train_run(const Cluster& cluster, const Json& run, Json request,
                                 int64_t timeout_us);

// How long the answer to a request may take: the controller says before if a step takes too long.
int64_t longest_profile_us(const Json& request);
// The records of a value of the store; an empty list if they cannot be read.
Json parse_profiles(const std::string& text);

}  // namespace rt::state
