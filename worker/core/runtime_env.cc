#include "worker/core/runtime_env.h"

#include <nlohmann/json.hpp>

#include "common/base/json_text.h"

namespace rt::worker {

std::string merge_runtime_env(const std::string& parent, const std::string& child) {
  if (child.empty()) return parent;
  nlohmann::json fields = parse_json(child);
  if (!fields.is_object()) return child;
  nlohmann::json merged = parse_json(parent);
  if (!merged.is_object()) merged = nlohmann::json::object();
  for (auto& [name, value] : fields.items()) {
    if (name == "env_vars" && value.is_object() && merged.contains(name) &&
        merged[name].is_object()) {
      merged[name].update(value);
    } else {
      merged[name] = value;
    }
  }
  return merged.empty() ? "" : ascii_json_text(merged);
}

}  // namespace rt::worker
