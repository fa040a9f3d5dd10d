#include "worker/core/runtime_env.h"

#include <nlohmann/json.hpp>

namespace rt::worker {

std::string merge_runtime_env(const std::string& parent, const std::string& child) {
  if (child.empty()) return parent;
  nlohmann::json fields = nlohmann::json::parse(child, nullptr, false);
  if (!fields.is_object()) return child;
  nlohmann::json merged = nlohmann::json::parse(parent, nullptr, false);
  if (!merged.is_object()) merged = nlohmann::json::object();
  for (auto& [name, value] : fields.items()) {
    if (name == "env_vars" && value.is_object() && merged.contains(name) &&
        merged[name].is_object()) {
      merged[name].update(value);
    } else {
      merged[name] = value;
    }
  }
  return merged.empty() ? "" : merged.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace rt::worker
