// The part of a runtime environment that processes other than Python workers have: env_vars.
#pragma once

#include <map>
#include <string>

#include "common/base/status.h"

namespace rt::node {

// `value` with each ${NAME} replaced by what `env`, else this process's environment has; by nothing when neither does.
std::string expand_variables(const std::string& value, const std::map<std::string, std::string>& env);

// env_vars of a runtime environment (JSON), expanded. kUnsupported names another field: those are for Python.
Result<std::map<std::string, std::string>> env_vars_of(const std::string& runtime_env, const std::map<std::string, std::string>& env);

}  // namespace rt::node
