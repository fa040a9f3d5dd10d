// The options of Init(), from the configuration, the flags and the environment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ray/api/config.h"

namespace ray::internal {

struct InitOptions {
  std::string address;
  bool local_mode = false;
  std::vector<std::string> code_search_path;
  std::vector<std::string> head_args;
  bool detached_actors = false;
  std::string ray_namespace;
  std::map<std::string, std::string> metadata;  // That of a submitted job.
  std::string runtime_env;                      // The job's, as JSON; empty when there is none.
};

// Ends the process for unknown flags, as a strict flag parser does. Throws RayException for bad
// values in the environment.
InitOptions init_options(const RayConfig& config, int argc, char** argv);

}  // namespace ray::internal
