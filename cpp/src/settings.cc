#include "settings.h"

#include <fmt/core.h>
#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/base/ids.h"
#include "common/base/json_text.h"
#include "common/base/rng.h"
#include "ray/api/exceptions.h"

namespace ray::internal {
namespace {

struct Flag {
  const char* name;
  const char* meaning;
};
// The flags of a C++ worker in Ray are accepted but not used: workers get these values in another
// form.
constexpr Flag kFlags[] = {
    {"ray_address", "cluster to join, ip:port"},
    {"ray_redis_username", "not used"},
    {"ray_redis_password", "not used"},
    {"ray_code_search_path", "directories of remote functions' libraries, separated by ':'"},
    {"ray_job_id", "not used"},
    {"ray_node_manager_port", "not used"},
    {"ray_raylet_socket_name", "not used"},
    {"ray_plasma_store_socket_name", "not used"},
    {"ray_session_dir", "not used"},
    {"ray_logs_dir", "not used"},
    {"ray_node_ip_address", "not used"},
    {"ray_head_args", "arguments for the private cluster, separated by spaces"},
    {"ray_worker_id", "not used"},
    {"ray_default_actor_lifetime", "detached or non_detached"},
    {"ray_runtime_env", "runtime environment as JSON"},
    {"ray_runtime_env_hash", "not used"},
    {"ray_job_namespace", "namespace of named actors"},
};

[[noreturn]] void refuse_flag(const std::string& message) {
  std::fprintf(stderr, "ERROR: %s\nKnown flags:\n", message.c_str());
  for (const Flag& flag : kFlags) std::fprintf(stderr, "  --%s: %s\n", flag.name, flag.meaning);
  std::exit(1);
}

const Flag* find_flag(const std::string& name) {
  for (const Flag& flag : kFlags) {
    if (name == flag.name) return &flag;
  }
  return nullptr;
}

std::map<std::string, std::string> parse_flags(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--") break;
    if (arg.size() < 2 || arg[0] != '-') continue;  // A positional argument is the program's own.
    arg.erase(0, arg[1] == '-' ? 2 : 1);
    size_t equals = arg.find('=');
    std::string name = arg.substr(0, equals);
    if (!find_flag(name)) refuse_flag(fmt::format("Unknown command line flag '{}'", name));
    if (equals != std::string::npos) {
      flags[name] = arg.substr(equals + 1);
    } else if (i + 1 < argc) {
      flags[name] = argv[++i];
    } else {
      refuse_flag(fmt::format("Missing the value for the flag '{}'", name));
    }
  }
  for (const char* number : {"ray_node_manager_port", "ray_runtime_env_hash"}) {
    auto it = flags.find(number);
    if (it == flags.end()) continue;
    char* end = nullptr;
    std::strtol(it->second.c_str(), &end, 10);
    if (it->second.empty() || *end)
      refuse_flag(
          fmt::format("Illegal value '{}' specified for flag '{}': a whole number is needed",
                      it->second, number));
  }
  return flags;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// The JSON of a job's environment, empty when there is none. C++ workers only support variables;
// other fields throw a RayException that names them.
std::string runtime_env_of(const std::string& source, const nlohmann::json& env) {
  if (!env.is_object())
    throw RayException(fmt::format("{}: the runtime environment is not a JSON object.", source));
  for (const auto& [field, value] : env.items()) {
    if (field != "env_vars" && field != "config")
      throw RayException(fmt::format(
          "{}: runtime_env field '{}' is for Python workers only: C++ workers have env_vars.",
          source, field));
  }
  return env.empty() ? std::string() : rt::ascii_json_text(env);
}

void apply_flags(const std::map<std::string, std::string>& flags, InitOptions* options) {
  auto with = [&](const char* name, const std::function<void(const std::string&)>& use) {
    auto it = flags.find(name);
    if (it != flags.end() && !it->second.empty()) use(it->second);
  };
  with("ray_address", [&](auto& v) { options->address = v; });
  with("ray_code_search_path", [&](auto& v) { options->code_search_path = split(v, ':'); });
  with("ray_head_args", [&](auto& v) {
    for (auto& part : split(v, ' ')) options->head_args.push_back(part);
  });
  with("ray_default_actor_lifetime", [&](auto& v) {
    if (strcasecmp(v.c_str(), "detached") != 0 && strcasecmp(v.c_str(), "non_detached") != 0) {
      std::fprintf(
          stderr,
          "ERROR: --ray_default_actor_lifetime must be detached or non_detached, not '%s'\n",
          v.c_str());
      std::abort();
    }
    options->detached_actors = strcasecmp(v.c_str(), "detached") == 0;
  });
  with("ray_job_namespace", [&](auto& v) { options->ray_namespace = v; });
  with("ray_runtime_env", [&](auto& v) {
    options->runtime_env = runtime_env_of("--ray_runtime_env", rt::parse_json(v));
  });
}

// The Jobs API sets the variable for the drivers that it starts.
void apply_job_config(const char* json, InitOptions* options) {
  nlohmann::json job = rt::parse_json(json);
  if (!job.is_object() || job.size() != 2 || !job.contains("runtime_env") ||
      !job.contains("metadata") || !job["metadata"].is_object() ||
      !job["runtime_env"].is_object()) {
    throw RayException(
        "RAY_JOB_CONFIG_JSON_ENV_VAR must be a JSON object with exactly the objects runtime_env "
        "and metadata.");
  }
  options->runtime_env = runtime_env_of("RAY_JOB_CONFIG_JSON_ENV_VAR", job["runtime_env"]);
  for (const auto& [key, value] : job["metadata"].items())
    options->metadata[key] = value.is_string() ? value.get<std::string>() : rt::json_text(value);
}

}  // namespace

InitOptions init_options(const RayConfig& config, int argc, char** argv) {
  InitOptions options;
  options.address = config.address;
  options.local_mode = config.local_mode;
  options.code_search_path = config.code_search_path;
  options.head_args = config.head_args;
  options.detached_actors = config.default_actor_lifetime == ActorLifetime::DETACHED;
  options.ray_namespace = config.ray_namespace;
  if (argc > 0) apply_flags(parse_flags(argc, argv), &options);
  if (const char* json = std::getenv("RAY_JOB_CONFIG_JSON_ENV_VAR"); json && *json)
    apply_job_config(json, &options);
  if (options.ray_namespace.empty()) {
    rt::Rng rng = rt::Rng::from_system();
    options.ray_namespace = rt::NodeId::random(rng).hex();  // 28 random bytes.
  }
  std::error_code ignored;
  if (options.code_search_path.empty()) {
    auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    if (!program.empty()) options.code_search_path.push_back(program.parent_path().string());
  }
  for (std::string& path : options.code_search_path) {
    auto absolute = std::filesystem::absolute(path, ignored);
    if (!ignored) path = absolute.lexically_normal().string();
  }
  return options;
}

}  // namespace ray::internal
