// Environment variables of a runtime environment. They are the only part of it that the
// node-manager itself applies; everything else is made by Python code in the process that is
// started.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/status.h"

namespace rt::node {

// Returns `value` with ${NAME} and $NAME replaced by the variable's value in `env`, or else in the
// environment of this process. If neither has the variable, ${NAME} becomes empty and $NAME stays.
std::string expand_variables(const std::string& value,
                             const std::map<std::string, std::string>& env);

struct RuntimeEnvParts {
  std::map<std::string, std::string> variables;  // env_vars, expanded
  std::optional<std::string> other;              // name of a field other than env_vars and config
};
// Parses a runtime environment (JSON). Variables are expanded with `env` and with each other, in
// the order of their names. Returns kInvalid if `runtime_env` is malformed.
Result<RuntimeEnvParts> parse_runtime_env(const std::string& runtime_env,
                                          const std::map<std::string, std::string>& env);

// Returns the variables of a runtime environment that has nothing else, and kUnsupported, naming
// the field, if it has more: only Python processes can make the rest.
Result<std::map<std::string, std::string>> env_vars_of(
    const std::string& runtime_env, const std::map<std::string, std::string>& env);

}  // namespace rt::node
