#include "daemons/node_manager/core/runtime_env.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/base/json_text.h"

namespace rt::node {

int64_t setup_timeout_us(const std::string& runtime_env) {
  constexpr int64_t kDefaultSeconds = 600, kMaxSeconds = 1'000'000'000;
  nlohmann::json env = parse_json(runtime_env);
  int64_t seconds = kDefaultSeconds;
  if (env.is_object() && env.contains("config") && env["config"].is_object()) {
    const nlohmann::json& config = env["config"];
    if (config.contains("setup_timeout_seconds") &&
        config["setup_timeout_seconds"].is_number_integer())
      seconds = config["setup_timeout_seconds"].get<int64_t>();
  }
  return seconds < 0 ? -1 : std::min(seconds, kMaxSeconds) * 1'000'000;
}

// Forgets the oldest outcomes beyond kMaxOutcomes, but none in use and never the one just recorded.
void RuntimeEnvTable::record(const std::string& runtime_env, const std::string& error,
                             int64_t setup_us, const std::set<std::string>& in_use) {
  Outcome& outcome = outcomes_[runtime_env];
  by_recency_.erase(outcome.recorded_at);
  outcome = {error, setup_us, ++last_recorded_};
  by_recency_[last_recorded_] = runtime_env;
  for (auto oldest = by_recency_.begin();
       by_recency_.size() > kMaxOutcomes && oldest->first != last_recorded_;) {
    if (in_use.contains(oldest->second)) {
      ++oldest;
      continue;
    }
    outcomes_.erase(oldest->second);
    oldest = by_recency_.erase(oldest);
  }
}

void RuntimeEnvTable::fill(const std::map<std::string, int>& workers,
                           proto::RuntimeEnvsReply* reply) const {
  for (const auto& [runtime_env, outcome] : outcomes_) {
    proto::RuntimeEnvInfo* info = reply->add_runtime_envs();
    info->set_runtime_env(runtime_env);
    info->set_success(outcome.error.empty());
    info->set_setup_us(outcome.setup_us);
    info->set_error(outcome.error);
    auto serving = workers.find(runtime_env);
    if (serving != workers.end()) info->set_workers(serving->second);
  }
}

}  // namespace rt::node
