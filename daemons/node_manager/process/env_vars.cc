#include "daemons/node_manager/process/env_vars.h"

#include <fmt/core.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace rt::node {

std::string expand_variables(const std::string& value, const std::map<std::string, std::string>& env) {
  std::string out;
  size_t at = 0;
  for (size_t open; (open = value.find("${", at)) != std::string::npos;) {
    size_t close = value.find('}', open);
    if (close == std::string::npos) break;
    out.append(value, at, open - at);
    std::string name = value.substr(open + 2, close - open - 2);
    if (auto given = env.find(name); given != env.end()) {
      out += given->second;
    } else if (const char* known = std::getenv(name.c_str())) {
      out += known;
    }
    at = close + 1;
  }
  return out.append(value, at);
}

Result<RuntimeEnvParts> parts_of(const std::string& runtime_env, const std::map<std::string, std::string>& env) {
  RuntimeEnvParts parts;
  nlohmann::json json = nlohmann::json::parse(runtime_env, nullptr, false);
  if (json.is_null()) return parts;
  if (!json.is_object()) return make_error(Code::kInvalid, "the runtime environment is no JSON object");
  for (const auto& [field, value] : json.items()) {
    if (field == "config") continue;
    if (field != "env_vars") {
      parts.others = true;
      parts.other = field;
      continue;
    }
    if (!value.is_object()) return make_error(Code::kInvalid, "runtime_env: env_vars is no object of strings");
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string()) return make_error(Code::kInvalid, fmt::format("runtime_env: the value of env_vars['{}'] is no string", name));
      parts.variables[name] = expand_variables(text.get<std::string>(), env);
    }
  }
  return parts;
}

Result<std::map<std::string, std::string>> env_vars_of(const std::string& runtime_env, const std::map<std::string, std::string>& env) {
  RT_ASSIGN(RuntimeEnvParts parts, parts_of(runtime_env, env));
  if (parts.others) return make_error(Code::kUnsupported, fmt::format("runtime_env field '{}' is for Python workers only: a C++ worker has env_vars", parts.other));
  return std::move(parts.variables);
}

}  // namespace rt::node
