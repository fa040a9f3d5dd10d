// Connects a driver to a cluster: to a running one by its address, else to a private one on this
// machine.
#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "cluster_runtime.h"
#include "common/base/environment.h"
#include "common/base/json_text.h"
#include "common/base/log.h"
#include "driver_output.h"
#include "errors.h"
#include "worker/find_node.h"

namespace ray::internal {
namespace {

constexpr int64_t kFindTimeoutUs = 10'000'000;

template <class T>
T value_or_throw(rt::Result<T> result) {
  if (!result) throw_error(result.error());
  return std::move(*result);
}

double number_of(const std::string& flag, const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end || !std::isfinite(value) || value < 0)
    throw RayException(
        fmt::format("head_args: {} is '{}': a number, 0 or more, is needed.", flag, text));
  return value;
}

template <class Int>
Int whole_number_of(const std::string& flag, const std::string& text) {
  Int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < 0)
    throw RayException(fmt::format("head_args: {} is '{}': a whole number from 0 to {} is needed.",
                                   flag, text, std::numeric_limits<Int>::max()));
  return value;
}

nlohmann::json object_of(const std::string& flag, const std::string& text) {
  auto json = rt::parse_json(text);
  if (!json.is_object())
    throw RayException(fmt::format(
        "head_args: {} is '{}': a JSON object is needed, such as {{\"name\": 1}}.", flag, text));
  return json;
}

void apply_head_arg(const std::string& flag, const std::string& value,
                    rt::launch::NodeOptions* node) {
  if (flag == "--num-cpus") {
    node->resources.num_cpus = number_of(flag, value);
  } else if (flag == "--num-gpus") {
    node->resources.num_gpus = number_of(flag, value);
  } else if (flag == "--memory") {
    node->resources.memory = whole_number_of<int64_t>(flag, value);
  } else if (flag == "--object-store-memory") {
    node->resources.object_store_memory = whole_number_of<int64_t>(flag, value);
  } else if (flag == "--port") {
    node->port = whole_number_of<int>(flag, value);
  } else if (flag == "--node-manager-port") {
    node->node_manager_port = whole_number_of<int>(flag, value);
  } else if (flag == "--node-ip-address") {
    node->node_ip = value;
  } else if (flag == "--node-name") {
    node->node_name = value;
  } else if (flag == "--temp-dir") {
    node->temp_dir = value;
  } else if (flag == "--plasma-directory") {
    node->plasma_directory = value;
  } else if (flag == "--resources") {
    const auto resources = object_of(flag, value);
    for (const auto& [name, amount] : resources.items())
      node->resources.custom[name] = number_of(flag, rt::json_text(amount));
  } else if (flag == "--labels") {
    const auto labels = object_of(flag, value);
    for (const auto& [name, label] : labels.items())
      node->labels[name] = label.is_string() ? label.get<std::string>() : rt::json_text(label);
  } else {
    throw RayException(
        fmt::format("head_args: {} is not known. Known are --num-cpus, --num-gpus, --memory, "
                    "--object-store-memory, --resources, --labels, "
                    "--port, --node-manager-port, --node-ip-address, --node-name, --temp-dir and "
                    "--plasma-directory.",
                    flag));
  }
}

rt::launch::StartedNode start_private_cluster(const InitOptions& options) {
  rt::launch::NodeOptions node;
  node.head = true;
  node.port = 0;
  node.node_ip = rt::environment("RAY_NODE_IP_ADDRESS");
  if (node.node_ip.empty()) node.node_ip = "127.0.0.1";
  node.private_to_parent = true;
  for (size_t i = 0; i < options.head_args.size(); ++i) {
    const std::string& arg = options.head_args[i];
    size_t equals = arg.find('=');
    if (equals != std::string::npos) {
      apply_head_arg(arg.substr(0, equals), arg.substr(equals + 1), &node);
    } else if (i + 1 < options.head_args.size()) {
      apply_head_arg(arg, options.head_args[++i], &node);
    } else {
      throw RayException(fmt::format("head_args: {} has no value.", arg));
    }
  }
  return value_or_throw(rt::launch::start_node(node));
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  for (char& c : text) {
    if (c == '\0') c = ' ';
  }
  if (!text.empty()) text.pop_back();
  return text;
}

rt::proto::JobConfig job_config(const InitOptions& options) {
  rt::proto::JobConfig job;
  job.set_ray_namespace(options.ray_namespace);
  for (const auto& path : options.code_search_path) job.add_code_search_path(path);
  for (const auto& [key, value] : options.metadata) (*job.mutable_metadata())[key] = value;
  job.set_runtime_env(options.runtime_env);
  // The job's workers read this, so that actors that they create are detached, too.
  if (options.detached_actors) (*job.mutable_metadata())[kDefaultLifetimeKey] = "detached";
  std::error_code ignored;
  job.set_cwd(std::filesystem::current_path(ignored).string());
  job.set_entrypoint(command_line());
  std::string log = rt::environment("RAY_LOG_TO_DRIVER");
  job.set_log_to_driver(log != "0" && log != "false");
  auto submission = options.metadata.find("job_submission_id");
  job.set_submission_id(!rt::environment("RAY_JOB_SUBMISSION_ID").empty()
                            ? rt::environment("RAY_JOB_SUBMISSION_ID")
                        : submission != options.metadata.end() ? submission->second
                                                               : "");
  return job;
}

}  // namespace

std::unique_ptr<Runtime> make_cluster_runtime(const InitOptions& options) {
  std::string address = options.address.empty() ? rt::environment("RAY_ADDRESS") : options.address;
  ClusterRuntime::Options runtime;
  runtime.detached_actors = options.detached_actors;
  runtime.ray_namespace = options.ray_namespace;
  rt::worker::Options worker;
  if (address.empty() || address == "local") {
    runtime.node = start_private_cluster(options);
    worker.node_manager_socket = runtime.node->node_manager_socket;
  } else {
    if (address == "auto") address = value_or_throw(rt::launch::resolve_address(""));
    const auto token = rt::launch::auth_token(/*create=*/false);
    auto node =
        token ? rt::worker::find_local_node(address, *token, kFindTimeoutUs) : token.error();
    if (!node)
      throw RayException(
          fmt::format("Could not connect to the cluster at {}: {}", address, node.error().message));
    worker.node_manager_socket = node->node_manager_socket();
  }
  worker.is_driver = true;
  worker.language = rt::proto::LANGUAGE_CPP;
  worker.job_config = job_config(options);
  const bool logs = worker.job_config.log_to_driver();
  worker.settings = value_or_throw(rt::load_settings("", {}));
  if (logs) worker.log_sink = worker_output_printer();
  auto started = rt::worker::Worker::start(std::move(worker));
  if (!started) {
    if (runtime.node) {
      close(runtime.node->lifeline_fd);
      rt::launch::stop_processes(runtime.node->processes, 0);
    }
    throw_error(started.error());
  }
  const rt::worker::Context context = (*started)->context();
  rt::LogOptions log;
  log.component = "driver";
  log.file = fmt::format("{}/logs/cpp-core-driver-{}_{}.log", context.session_dir,
                         context.job_id.hex(), getpid());
  log.level = rt::parse_log_level(rt::environment("RAY_BACKEND_LOG_LEVEL"), rt::LogLevel::kInfo);
  rt::init_log(log);
  runtime.ray_namespace = context.ray_namespace;
  runtime.prints_output = logs;
  return std::make_unique<ClusterRuntime>(std::move(*started), std::move(runtime));
}

}  // namespace ray::internal
