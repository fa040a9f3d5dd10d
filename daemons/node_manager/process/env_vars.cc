#include "daemons/node_manager/process/env_vars.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/json_text.h"

namespace rt::node {

std::string expand_variables(const std::string& value,
                             const std::map<std::string, std::string>& env) {
  auto append = [&env](const std::string& name, const std::string& otherwise, std::string* out) {
    auto given = env.find(name);
    const char* known = given == env.end() ? std::getenv(name.c_str()) : given->second.c_str();
    *out += known ? known : otherwise;
  };
  auto in_name = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  std::string out;
  for (size_t at = 0; at < value.size();) {
    size_t close = value.compare(at, 2, "${") == 0 ? value.find('}', at) : std::string::npos;
    size_t end = at + 1;
    if (value[at] == '$')
      end =
          std::find_if_not(value.begin() + static_cast<std::ptrdiff_t>(end), value.end(), in_name) -
          value.begin();
    if (close != std::string::npos) {
      append(value.substr(at + 2, close - at - 2), "", &out);
      at = close + 1;
    } else if (value[at] == '$' && end > at + 1) {
      append(value.substr(at + 1, end - at - 1), value.substr(at, end - at), &out);
      at = end;
    } else {
      out += value[at++];
    }
  }
  return out;
}

Result<RuntimeEnvParts> parse_runtime_env(const std::string& runtime_env,
                                          const std::map<std::string, std::string>& env) {
  RuntimeEnvParts parts;
  nlohmann::json json = parse_json(runtime_env);
  if (json.is_null()) return parts;
  if (!json.is_object())
    return make_error(Code::kInvalid, "the runtime environment is not a JSON object");
  for (const auto& [field, value] : json.items()) {
    if (field == "config") continue;
    if (field != "env_vars") {
      parts.other = field;
      continue;
    }
    if (!value.is_object())
      return make_error(Code::kInvalid, "runtime_env: env_vars is not an object of strings");
    std::map<std::string, std::string> known = env;
    // Items come in the order of their names; a later one may refer to an earlier one.
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string())
        return make_error(
            Code::kInvalid,
            fmt::format("runtime_env: the value of env_vars['{}'] is not a string", name));
      constexpr char kNull = '\0';
      if (name.empty() || name.find_first_of(std::string{'=', kNull}) != name.npos ||
          text.get_ref<const std::string&>().find(kNull) != std::string::npos) {
        return make_error(
            Code::kInvalid,
            fmt::format("runtime_env: env_vars[{}] is not a valid name of an environment "
                        "variable, or its value has a null character",
                        json_text(nlohmann::json(name))));
      }
      known[name] = parts.variables[name] = expand_variables(text.get<std::string>(), known);
    }
  }
  return parts;
}

Result<std::map<std::string, std::string>> env_vars_of(
    const std::string& runtime_env, const std::map<std::string, std::string>& env) {
  RT_ASSIGN(RuntimeEnvParts parts, parse_runtime_env(runtime_env, env));
  if (parts.other)
    return make_error(
        Code::kUnsupported,
        fmt::format("runtime_env field '{}' is for Python workers only: a C++ worker has env_vars",
                    *parts.other));
  return std::move(parts.variables);
}

}  // namespace rt::node
