#include "cli/client/state_common.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/client/head_client.h"
#include "cli/terminal/print.h"
#include "common/base/clock.h"
#include "common/base/environment.h"
#include "common/base/readable.h"
#include "launch/node/launch.h"
#include "observability/state/over_http.h"

namespace rt::cli {

Result<state::Cluster> state_cluster(const std::string& option) {
  state::Cluster cluster;
  RT_ASSIGN(cluster.token, client_token());
  cluster.head_address = option.empty() ? environment("RAY_ADDRESS") : option;
  if (state::is_http(cluster.head_address)) return cluster;
  RT_ASSIGN(cluster.head_address, launch::resolve_address(option));
  return cluster;
}

Result<state::Cluster> state_cluster(const CommandLine& line) {
  RT_ASSIGN(auto cluster, state_cluster(line.get("address")));
  RT_ASSIGN(cluster.connect_us, connect_us(line));
  return cluster;
}

Result<int64_t> connect_us(const CommandLine& line) {
  return line.has("timeout") ? timeout_us(line) : Result<int64_t>(kConnectTimeoutUs);
}

Result<state::Answer> state_list(const state::Cluster& cluster, const state::Query& query) {
  return state::is_http(cluster.head_address) ? state::list_over_http(cluster, query)
                                              : state::list(cluster, query);
}

Result<state::Answer> state_summary(const state::Cluster& cluster, const state::Query& query) {
  return state::is_http(cluster.head_address) ? state::summarize_over_http(cluster, query)
                                              : state::summarize(cluster, query);
}

const state::Resource* state_resource(const std::string& word) {
  std::string name = word;
  std::replace(name.begin(), name.end(), '-', '_');
  return state::find_resource(name);
}

Result<int64_t> timeout_us(const CommandLine& line) {
  constexpr int64_t kDefaultS = 30;
  RT_ASSIGN(auto seconds, line.whole("timeout", 1, CommandLine::kLongestTimeoutS));
  return seconds.value_or(kDefaultS) * 1'000'000;
}

std::string truncation_text(int64_t shown, int64_t all) {
  if (shown >= state::kMaxLimit)
    return fmt::format("Showing {} of {}, the most that a list can show. Use --filter to select.",
                       shown, all);
  return fmt::format(
      "Showing {} of {}. Use --limit (at most {}) to see more or --filter to select.", shown, all,
      state::kMaxLimit);
}

void warn_of_missing(const api_json::Json& answer) {
  auto warn = [](const std::string& text) { print(stderr, "Warning: {}\n", text); };
  if (answer.contains("partial_failure_warning") && answer["partial_failure_warning"].is_string())
    warn(answer["partial_failure_warning"]);
  if (answer.contains("warnings") && answer["warnings"].is_array()) {
    for (const auto& text : answer["warnings"]) warn(text);
  }
  if (!answer.contains("num_filtered")) return;
  int64_t all = answer["num_filtered"], shown = answer["num_after_truncation"];
  if (all > shown) warn(truncation_text(shown, all));
}

std::string now_text() {
  int64_t now_us = wall_now_us();
  return fmt::format("{}.{:06}", local_time(now_us / 1000), now_us % 1'000'000);
}

int state_finish(const std::string& command, const Status& status) {
  return !status && status.error().code == Code::kInvalid
             ? usage_error(command, status.error().message)
             : finish(status);
}

}  // namespace rt::cli
