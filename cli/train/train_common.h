// Shared by the commands of training runs: finding the cluster and a run in it.
#pragma once

#include "cli/client/state_common.h"
#include "observability/state/train_runs.h"

namespace rt::cli {

// All runs, over RPC or HTTP, as the array "train_runs" of state::train_runs().
Result<state::Answer> all_train_runs(const state::Cluster& cluster, int64_t timeout_us);
// The run that a word names; kNotFound, with the names that there are, if there is none.
Result<state::Answer> named_train_run(const state::Cluster& cluster, const std::string& word,
                                      int64_t timeout_us);
// See state::look_at_ranks().
Result<state::Answer> train_look(const state::Cluster& cluster, const state::Json& run,
                                 double seconds, int64_t timeout_us);

// See state::train_profiles().
Result<state::Answer> train_profiles_of(const state::Cluster& cluster, const std::string& run_id,
                                        int64_t timeout_us);

}  // namespace rt::cli
