// How ray::Init() starts or joins a cluster.
#pragma once

#include <boost/optional.hpp>
#include <string>
#include <vector>

#include "ray/api/visibility.h"

namespace ray {

// Whether actors end with the program that made them (or with their last handle), or live on.
enum class ActorLifetime { NON_DETACHED, DETACHED };

class RAY_API RayConfig {
 public:
  // "ip:port" or "auto". Empty: $RAY_ADDRESS, else a private cluster on this machine that ends with
  // this program.
  std::string address = "";

  // Everything runs inside this process: no cluster, no other processes.
  bool local_mode = false;

  // Directories (or single files) of the shared libraries with the remote functions, as the
  // workers' machines see them. Empty: the directory of this program.
  std::vector<std::string> code_search_path;

  // For the private cluster, as for `ray start --head`: {"--num-cpus=4", "--resources", "{\"a\":
  // 1}"}.
  std::vector<std::string> head_args;

  ActorLifetime default_actor_lifetime = ActorLifetime::NON_DETACHED;

  // Names of actors are unique in a namespace. Empty: a random one.
  std::string ray_namespace = "";

  // Kept for programs that set them; nothing here speaks to Redis.
  boost::optional<std::string> redis_username_;
  boost::optional<std::string> redis_password_;
  bool is_worker_ = false;
};

}  // namespace ray
