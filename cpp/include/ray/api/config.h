// RayConfig: how ray::Init() starts or joins a cluster.
#pragma once

#include <boost/optional.hpp>
#include <string>
#include <vector>

#include "ray/api/visibility.h"

namespace ray {

// NON_DETACHED actors end with the program that created them or with their last handle; DETACHED
// actors live on.
enum class ActorLifetime { NON_DETACHED, DETACHED };

class RAY_API RayConfig {
 public:
  // "ip:port", "auto" (the cluster of this machine) or "local" (a new private cluster). Empty
  // means $RAY_ADDRESS, else a private cluster on this machine, which ends with this program.
  std::string address = "";

  // Run everything inside this process: no cluster, no other processes.
  bool local_mode = false;

  // Directories (or single files) of the shared libraries with the remote functions, as paths on
  // the workers' machines. Empty means the directory of this program.
  std::vector<std::string> code_search_path;

  // Arguments for the private cluster, a subset of those of `ray start --head`:
  // {"--num-cpus=4", "--resources", "{\"a\": 1}"}.
  std::vector<std::string> head_args;

  ActorLifetime default_actor_lifetime = ActorLifetime::NON_DETACHED;

  // The names of actors are unique in a namespace. Empty means a random namespace.
  std::string ray_namespace = "";

  // Accepted for programs that set them; nothing uses Redis.
  boost::optional<std::string> redis_username_;
  boost::optional<std::string> redis_password_;
  bool is_worker_ = false;
};

}  // namespace ray
