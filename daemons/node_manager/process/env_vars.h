// The part of a runtime environment that processes other than Python workers have: env_vars.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/status.h"

namespace rt::node {

// `value` with ${NAME} and $NAME replaced by what `env`, else this process's environment has. When
// neither does, ${NAME} is replaced by nothing and $NAME stays.
std::string expand_variables(const std::string& value,
                             const std::map<std::string, std::string>& env);

// What a runtime environment (JSON) asks of a process: variables, expanded, and a field that asks
// for more than these.
struct RuntimeEnvParts {
  std::map<std::string, std::string> variables;
  std::optional<std::string> other;
};
Result<RuntimeEnvParts> parts_of(const std::string& runtime_env,
                                 const std::map<std::string, std::string>& env);

// Only its variables. kUnsupported names another field: those are for Python.
Result<std::map<std::string, std::string>> env_vars_of(
    const std::string& runtime_env, const std::map<std::string, std::string>& env);

}  // namespace rt::node
