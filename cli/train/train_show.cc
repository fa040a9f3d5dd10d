// `rayctl train show`: one training run with its attempts and ranks.
#include <algorithm>

#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/train/train_common.h"
#include "cli/train/train_profiles_text.h"
#include "cli/train/train_ranks_text.h"
#include "cli/train/train_text.h"
#include "common/base/clock.h"
#include "observability/state/over_http.h"

namespace rt::cli {
namespace {

// The reports of the run; null if the run has gone meanwhile.
Result<state::Answer> metrics_of(const state::Cluster& cluster, const state::Json& run,
                                 int64_t timeout_us) {
  const std::string id = text_of(run, "id");
  auto found = state::is_http(cluster.head_address)
                   ? state::train_metrics_over_http(cluster, id, timeout_us)
                   : state::train_metrics(cluster, id, timeout_us);
  if (!found && found.error().code == Code::kNotFound) return state::Answer{};
  return found;
}

// The run's profiles; null if the run has gone meanwhile.
Result<state::Answer> profiles_of_run(const state::Cluster& cluster, const state::Json& run,
                                      int64_t timeout_us) {
  auto found = train_profiles_of(cluster, text_of(run, "id"), timeout_us);
  if (!found && found.error().code == Code::kNotFound) return state::Answer{};
  return found;
}

// How long the ranks may take to say where they are. The rest of the answer does not need them.
constexpr int64_t kLookTimeoutUs = 5'000'000;

bool has_living_ranks(const state::Json& run) {
  for (const state::Json& attempt : run["attempts"]) {
    for (const state::Json& worker : attempt["workers"]) {
      if (text_of(worker, "status") == "ALIVE") return true;
    }
  }
  return false;
}

// Where the ranks are now; null if none is alive, or if that cannot be said.
state::Json places_of(const state::Cluster& cluster, const state::Json& run, int64_t timeout_us) {
  if (!has_living_ranks(run)) return {};
  auto look = train_look(cluster, run, 0, std::min(timeout_us, kLookTimeoutUs));
  return look ? std::move(look->json) : state::Json();
}

Status show_run(const CommandLine& line, int64_t timeout_us) {
  RT_ASSIGN(auto cluster, state_cluster(line));
  RT_ASSIGN(auto run, named_train_run(cluster, line.get("NAME"), timeout_us));
  RT_ASSIGN(auto metrics, metrics_of(cluster, run.json, timeout_us));
  RT_ASSIGN(auto profiles, profiles_of_run(cluster, run.json, timeout_us));
  state::Json look = places_of(cluster, run.json, timeout_us);
  if (line.for_programs()) {
    run.json["metrics"] = std::move(metrics.json);
    run.json["look"] = std::move(look);
    run.json["profiles"] = std::move(profiles.json["profiles"]);
    run.json["tensorboard"] = std::move(profiles.json["tensorboard"]);
    print_data(line, run.json);
  } else {
    print("{}", train_run_text(run.json, metrics.json, wall_now_us() / 1000));
    if (!look.is_null()) print("{}", train_places_text(look));
    print("{}", train_profiles_text(profiles.json));
  }
  return {};
}

}  // namespace

int run_train_show(const Words& words) {
  CommandLine line(
      "train show",
      "Shows a training run: its attempts, its ranks with node, process and GPUs, its "
      "last report, where each rank is now, and its profiles. NAME is the run's name (its newest "
      "run) or its id.");
  line.address_option().format_option("text|json|yaml").timeout_option().positional("NAME", true);
  if (auto code = line.parse(words)) return *code;
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("train show", timeout.error().message);
  return finish(show_run(line, *timeout));
}

}  // namespace rt::cli
