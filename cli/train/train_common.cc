#include "cli/train/train_common.h"

#include <fmt/core.h>

#include "cli/train/train_text.h"
#include "observability/state/over_http.h"
#include "observability/state/train_profiles.h"
#include "observability/state/train_ranks.h"

namespace rt::cli {

Result<state::Answer> all_train_runs(const state::Cluster& cluster, int64_t timeout_us) {
  RT_ASSIGN(auto answer, state::is_http(cluster.head_address)
                             ? state::train_runs_over_http(cluster, timeout_us)
                             : state::train_runs(cluster, timeout_us));
  return state::Answer{std::move(answer.json["train_runs"])};
}

Result<state::Answer> named_train_run(const state::Cluster& cluster, const std::string& word,
                                      int64_t timeout_us) {
  RT_ASSIGN(auto runs, all_train_runs(cluster, timeout_us));
  const state::Json* run = state::find_train_run(runs.json, word);
  if (!run)
    return make_error(Code::kNotFound, fmt::format("no training run has the name or id '{}'; {}",
                                                   excerpt(word), names_text(runs.json)));
  return state::Answer{*run};
}

Result<state::Answer> train_look(const state::Cluster& cluster, const state::Json& run,
                                 double seconds, int64_t timeout_us) {
  return state::is_http(cluster.head_address)
             ? state::look_at_ranks_over_http(cluster, text_of(run, "id"), seconds, timeout_us)
             : state::look_at_ranks(cluster, run, seconds, timeout_us);
}

Result<state::Answer> train_profiles_of(const state::Cluster& cluster, const std::string& run_id,
                                        int64_t timeout_us) {
  return state::is_http(cluster.head_address)
             ? state::train_profiles_over_http(cluster, run_id, timeout_us)
             : state::train_profiles(cluster, run_id, timeout_us);
}

}  // namespace rt::cli
