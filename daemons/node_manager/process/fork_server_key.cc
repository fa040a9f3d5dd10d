#include "daemons/node_manager/process/fork_server_key.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/json_text.h"
#include "common/base/start_variables.h"
#include "daemons/node_manager/process/env_vars.h"

namespace rt::node {
namespace {

// The names travel on the server's command line. ray.runtime_env allows 100 modules.
constexpr size_t kMaxPreloadBytes = 32 * 1024;

// Whether pip or a compiler that it starts reads the variable, or finds files by it.
bool is_read_by_pip(const std::string& name) {
  for (const char* prefix : {"PIP_", "SSL_CERT_", "HTTP_", "HTTPS_", "NO_PROXY", "ALL_PROXY",
                             "http_", "https_", "no_proxy", "all_proxy"}) {
    if (name.starts_with(prefix)) return true;
  }
  for (const char* one : {"PATH", "HOME", "TMPDIR", "NETRC", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
                          "CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"}) {
    if (name == one) return true;
  }
  return false;
}

bool is_set(const nlohmann::json& env, const char* field) {
  return env.contains(field) && !env[field].is_null() && !env[field].empty();
}

}  // namespace

ForkServerKey fork_server_key(const std::string& python, const std::string& runtime_env,
                              const std::map<std::string, std::string>& env) {
  ForkServerKey plain{.python = python, .preload = {}, .interpreter = {}, .env = {}};
  // Most environments have no such field, and need not be parsed.
  const auto mentions = [&](const char* field) {
    return runtime_env.find(field) != std::string::npos;
  };
  if (!mentions("\"preload\"") && !mentions("\"pip\"") && !mentions("\"py_executable\""))
    return plain;
  nlohmann::json json = parse_json(runtime_env);
  auto parts = parse_runtime_env(runtime_env, env);
  if (!json.is_object() || !parts) return plain;
  ForkServerKey key = plain;
  size_t bytes = 0;
  if (is_set(json, "preload")) {
    if (!json["preload"].is_array()) return plain;
    for (const auto& name : json["preload"]) {
      if (!name.is_string()) return plain;
      key.preload.push_back(name.get<std::string>());
      bytes += key.preload.back().size() + 4;
    }
  }
  nlohmann::json interpreter = nlohmann::json::object();
  for (const char* field : {"pip", "py_executable"}) {
    if (is_set(json, field)) interpreter[field] = json[field];
  }
  if (!interpreter.empty()) {
    // A plugin of the node may have its own idea of the interpreter (runtime_env/plugin.py).
    if (std::getenv("RAY_RUNTIME_ENV_PLUGINS") || env.contains("RAY_RUNTIME_ENV_PLUGINS"))
      return plain;
    if (is_set(json, "config")) interpreter["config"] = json["config"];
    key.interpreter = json_text(interpreter);
  }
  if (bytes > kMaxPreloadBytes || key.plain()) return plain;
  for (const auto& [name, value] : parts->variables) {
    // A preloaded module, or the other interpreter, may have loaded a math library.
    if (is_read_at_start(name) || is_read_by_math_libraries(name) ||
        (is_set(json, "pip") && is_read_by_pip(name)))
      key.env[name] = value;
  }
  return key;
}

}  // namespace rt::node
