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
  // The fields of the runtime environment that replace the interpreter ("pip", "py_executable"),
  // and "config" with their time limit, as JSON; empty without any. The server makes them, and
  // becomes that interpreter before it forks.
  std::string interpreter;
  // The variables of the runtime environment that loader, interpreter and math libraries read only
  // when they start, and with pip those that it reads. A plain server has none: its workers use an
  // exec after the fork, which would lose the modules of the others.
  std::map<std::string, std::string> env;

  bool plain() const { return preload.empty() && interpreter.empty(); }
  friend auto operator<=>(const ForkServerKey&, const ForkServerKey&) = default;
};

// Returns the key for workers of `runtime_env` (JSON, or empty) that run `python`; `env` is what
// every worker gets. It is that of a plain server for an environment that is malformed, whose
// worker reports the mistake, and where plugins may change the interpreter.
ForkServerKey fork_server_key(const std::string& python, const std::string& runtime_env,
                              const std::map<std::string, std::string>& env);

}  // namespace rt::node
