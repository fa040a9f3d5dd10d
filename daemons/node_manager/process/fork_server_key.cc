#include "daemons/node_manager/process/fork_server_key.h"

#include <nlohmann/json.hpp>

#include "daemons/node_manager/process/env_vars.h"

namespace rt::node {
namespace {

// The names travel on the server's command line. ray.runtime_env allows 100 modules.
constexpr size_t kMaxPreloadBytes = 32 * 1024;

// The same names as _needs_exec() in python/ray/_private/runtime_env/setup.py, with math libraries
// always counted: a preloaded module may have loaded one.
bool read_at_start(const std::string& name) {
  for (const char* prefix : {"LD_", "MALLOC_", "GLIBC_TUNABLES", "OMP_", "GOMP_", "KMP_", "MKL_",
                             "OPENBLAS_", "NUMEXPR_", "BLIS_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name.starts_with("PYTHON") && name != "PYTHONPATH" && name != "PYTHONBREAKPOINT";
}

bool is_set(const nlohmann::json& env, const char* field) {
  return env.contains(field) && !env[field].is_null() && !env[field].empty();
}

}  // namespace

ForkServerKey fork_server_key(const std::string& python, const std::string& runtime_env,
                              const std::map<std::string, std::string>& env) {
  ForkServerKey plain{.python = python, .preload = {}, .env = {}};
  // Most environments have no such field, and need not be parsed.
  if (runtime_env.find("\"preload\"") == std::string::npos) return plain;
  nlohmann::json json = nlohmann::json::parse(runtime_env, nullptr, false);
  if (!json.is_object() || !json.contains("preload") || !json["preload"].is_array()) return plain;
  if (is_set(json, "pip") || is_set(json, "py_executable")) return plain;
  ForkServerKey key = plain;
  size_t bytes = 0;
  for (const auto& name : json["preload"]) {
    if (!name.is_string()) return plain;
    key.preload.push_back(name.get<std::string>());
    bytes += key.preload.back().size() + 4;
  }
  auto parts = parse_runtime_env(runtime_env, env);
  if (!parts || bytes > kMaxPreloadBytes || key.preload.empty()) return plain;
  for (const auto& [name, value] : parts->variables) {
    if (read_at_start(name)) key.env[name] = value;
  }
  return key;
}

}  // namespace rt::node
