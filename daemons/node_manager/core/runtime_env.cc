#include "daemons/node_manager/core/runtime_env.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rt::node {

int64_t setup_timeout_us(const std::string& runtime_env) {
  constexpr int64_t kDefaultSeconds = 600, kMaxSeconds = 1'000'000'000;
  nlohmann::json env = nlohmann::json::parse(runtime_env, nullptr, false);
  int64_t seconds = kDefaultSeconds;
  if (env.is_object() && env.contains("config") && env["config"].is_object()) {
    const nlohmann::json& config = env["config"];
    if (config.contains("setup_timeout_seconds") && config["setup_timeout_seconds"].is_number_integer()) seconds = config["setup_timeout_seconds"].get<int64_t>();
  }
  return seconds < 0 ? -1 : std::min(seconds, kMaxSeconds) * 1'000'000;
}

}  // namespace rt::node
