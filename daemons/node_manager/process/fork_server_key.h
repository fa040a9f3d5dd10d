// The identity of a fork server: two workers come from the same server if their keys are equal.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace rt::node {

struct ForkServerKey {
  std::string python;  // path of the interpreter
  // Modules that the server imports before it forks, in this order (runtime_env "preload").
  std::vector<std::string> preload;
  // The variables of the runtime environment that loader, interpreter and math libraries read only
  // when they start. Only a server that preloads has them: its modules must see them, and an exec
  // after the fork, which plain workers use, would lose the modules.
  std::map<std::string, std::string> env;

  bool preloads() const { return !preload.empty(); }
  friend auto operator<=>(const ForkServerKey&, const ForkServerKey&) = default;
};

// Returns the key for workers of `runtime_env` (JSON, or empty) that run `python`; `env` is what
// every worker gets. Preloads nothing where that cannot help: the environment replaces the
// interpreter (pip, py_executable), or is malformed. The worker then imports the modules itself,
// or reports the mistake.
ForkServerKey fork_server_key(const std::string& python, const std::string& runtime_env,
                              const std::map<std::string, std::string>& env);

}  // namespace rt::node
