// ray-node-manager: turns flags and settings into NodeManagerOptions and runs a NodeManager
// (service/). The flags are described in docs/daemon-flags.md.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "common/base/environment.h"
#include "common/base/json_text.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "daemons/node_manager/service/node_manager.h"
#include "launch/daemon/notify.h"
#include "launch/daemon/process.h"
#include "launch/node/detect.h"

namespace rt::node {
namespace {

namespace fs = std::filesystem;

struct Flags : daemon::Flags {
  std::string host, socket, head_address, store_socket, node_ip, node_name, node_id, resources,
      labels, python = "/usr/bin/python3", python_path;
  int port = 0, listen_fd = -1, unix_listen_fd = -1, metrics_export_port = 0,
      metrics_listen_fd = -1;
  bool is_head_node = false;
};

Status check(const Flags& flags) {
  if (flags.head_address.empty())
    return make_error(Code::kInvalid,
                      "--head-address HOST:PORT is needed: the head of the cluster to join");
  if (flags.session_dir.empty())
    return make_error(Code::kInvalid, "--session-dir DIR is needed: logs and sockets go there");
  if (!flags.node_id.empty() && !NodeId::is_valid(from_hex(flags.node_id))) {
    return make_error(Code::kInvalid, fmt::format("--node-id '{}' is not an id of {} hex digits",
                                                  flags.node_id, NodeId::kSize * 2));
  }
  RT_TRY(daemon::check_port(flags.metrics_export_port));
  return daemon::check_port(flags.port);
}

Result<std::optional<Flags>> parse(int argc, char** argv) {
  Flags flags;
  const std::vector<daemon::Flag> own = {
      {"port", &flags.port, "PORT", "TCP port of the node (0: any free one)"},
      {"host", &flags.host, "IP", "TCP address to listen on (default: --node-ip)"},
      {"listen-fd", &flags.listen_fd, "N", "inherited listening TCP socket instead"},
      {"unix-listen-fd", &flags.unix_listen_fd, "N",
       "inherited listening Unix socket (its path: --socket)"},
      {"metrics-export-port", &flags.metrics_export_port, "PORT",
       "TCP port of GET /metrics, for Prometheus (0: any free one)"},
      {"metrics-listen-fd", &flags.metrics_listen_fd, "N",
       "inherited listening TCP socket instead"},
      {"socket", &flags.socket, "PATH",
       "Unix socket to listen on (default: SESSION/sockets/raylet)"},
      {"head-address", &flags.head_address, "HOST:PORT", "HOST:PORT of the head"},
      {"store-socket", &flags.store_socket, "PATH", "the node's object store"},
      {"node-ip", &flags.node_ip, "IP",
       "address other nodes reach this one by (default: $RAY_NODE_IP_ADDRESS, else detected)"},
      {"node-name", &flags.node_name, "NAME", "name of the node (default: its address)"},
      {"node-id", &flags.node_id, "HEX", "id of the node, hex (default: random)"},
      {"resources", &flags.resources, "JSON",
       "all totals as JSON, e.g. {\"CPU\": 2} (default: what the machine has)"},
      {"labels", &flags.labels, "JSON", "labels as JSON"},
      {"is-head-node", &flags.is_head_node, "", "this node runs beside the head"},
      {"python", &flags.python, "PATH", "interpreter of the workers (default: /usr/bin/python3)"},
      {"python-path", &flags.python_path, "DIR",
       "directory that holds the ray package (default: found beside this program)"}};
  const std::string about = "ray-node-manager: leases, workers and actors of one node";
  RT_ASSIGN(bool start, daemon::parse_flags(argc, argv, about, own, flags));
  if (!start) return std::optional<Flags>();
  RT_TRY(check(flags));
  flags.session_dir = fs::absolute(flags.session_dir).lexically_normal().string();
  return std::optional<Flags>(std::move(flags));
}

Result<std::map<std::string, double>> parse_resources(const std::string& text) {
  std::map<std::string, double> amounts;
  auto json = parse_json(text);
  if (!json.is_object())
    return make_error(Code::kInvalid, fmt::format("--resources is not a JSON object: {}", text));
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number())
      return make_error(Code::kInvalid, fmt::format("--resources: '{}' must be a number, not {}",
                                                    name, json_text(value)));
    amounts[name] = value.get<double>();
  }
  return amounts;
}

// Returns the node's resources: those of --resources, or else what the machine and the node's
// store have, detected in the same way as by `rayctl start`.
Result<ResourceSet> totals_of(const Flags& flags, const NodeManagerOptions& options) {
  std::map<std::string, double> amounts;
  if (!flags.resources.empty()) {
    RT_ASSIGN(amounts, parse_resources(flags.resources));
  } else {
    int64_t store_bytes = 0;
    if (!options.store_socket.empty()) {
      RT_ASSIGN(store_bytes, ask_store_capacity(options));
    }
    amounts = launch::detect_totals(options.node_ip, store_bytes);
  }
  if (std::string text = environment("RAY_OVERRIDE_RESOURCES"); !text.empty()) {
    RT_ASSIGN(auto overrides, parse_resources(text));
    for (const auto& [name, amount] : overrides) amounts[name] = amount;
  }
  amounts.try_emplace("node:" + options.node_ip, 1);
  if (options.is_head_node) amounts.try_emplace("node:__internal_head__", 1);
  return ResourceSet::from_map(amounts);
}

// Returns the devices in CUDA_VISIBLE_DEVICES: only these may be assigned to workers.
std::vector<std::string> visible_gpus() {
  std::vector<std::string> names;
  std::istringstream list(environment("CUDA_VISIBLE_DEVICES"));
  for (std::string name; std::getline(list, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

Result<std::map<std::string, std::string>> parse_labels(const std::string& text) {
  std::map<std::string, std::string> labels;
  if (text.empty()) return labels;
  auto json = parse_json(text);
  if (!json.is_object())
    return make_error(Code::kInvalid, fmt::format("--labels is not a JSON object: {}", text));
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string())
      return make_error(Code::kInvalid, fmt::format("--labels: '{}' must be a string, not {}", name,
                                                    json_text(value)));
    labels[name] = value.get<std::string>();
  }
  return labels;
}

std::string executable_dir() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec).parent_path().string();
}

// Returns the directory that holds the `ray` package, given the place of this program in a build
// tree, in an installation or inside the package of a wheel.
std::string find_python_path(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code ec;
  for (const char* relative : {"/../python", "/../" RT_PYTHON_INSTALL}) {
    fs::path candidate = fs::path(executable_dir() + relative).lexically_normal();
    if (fs::exists(candidate / "ray", ec)) return candidate.string();
  }
  fs::path package = fs::path(executable_dir()).parent_path();
  if (package.filename() == "ray" && fs::exists(package / "__init__.py", ec))
    return package.parent_path().string();
  return fs::path(executable_dir() + "/../python").lexically_normal().string();
}

void fill_worker_env(const std::map<std::string, std::string>& setting_flags,
                     NodeManagerOptions& options) {
  options.programs.env["RAY_RAYLET_PID"] = std::to_string(::getpid());
  // Otherwise math libraries that are loaded before the first task would use all CPUs of the
  // machine. The worker sets the variable again when it knows the CPUs of a task.
  if (!std::getenv("OMP_NUM_THREADS")) options.programs.env.emplace("OMP_NUM_THREADS", "1");
  for (const auto& [name, value] : setting_flags) options.programs.env["RAY_" + name] = value;
}

Result<NodeManagerOptions> make_options(const Flags& flags, const Settings& settings) {
  NodeManagerOptions options;
  options.settings = settings;
  options.session_dir = flags.session_dir;
  options.socket_path = flags.socket.empty()
                            ? flags.session_dir + "/sockets/raylet"
                            : fs::absolute(flags.socket).lexically_normal().string();
  options.unix_listen_fd = flags.unix_listen_fd;
  options.tcp_listen_fd = flags.listen_fd;
  options.metrics_port = flags.metrics_export_port;
  options.metrics_listen_fd = flags.metrics_listen_fd;
  options.store_socket = flags.store_socket;
  RT_ASSIGN(options.head, net::Address::parse(flags.head_address));
  RT_ASSIGN(options.token, daemon::read_token(flags));
  options.node_ip = !flags.node_ip.empty() ? flags.node_ip : environment("RAY_NODE_IP_ADDRESS");
  if (options.node_ip.empty()) options.node_ip = net::detect_node_ip(options.head.host);
  options.tcp = net::Address::tcp(flags.host.empty() ? options.node_ip : flags.host, flags.port);
  options.node_name = flags.node_name;
  Rng rng = Rng::from_system();
  options.seed = rng.next();
  options.node_id = flags.node_id.empty() ? NodeId::random(rng) : NodeId::from_hex(flags.node_id);
  options.is_head_node = flags.is_head_node;
  RT_ASSIGN(options.total, totals_of(flags, options));
  RT_ASSIGN(options.labels, parse_labels(flags.labels));
  RT_ASSIGN(auto overrides, parse_labels(environment("RAY_OVERRIDE_LABELS")));
  for (const auto& [name, value] : overrides) options.labels[name] = value;
  options.gpu_names = visible_gpus();
  options.labels.try_emplace("ray.io/node-id", options.node_id.hex());
  options.programs.python = flags.python;
  options.programs.python_path = find_python_path(flags.python_path);
  options.programs.cpp_worker = executable_dir() + "/ray-cpp-worker";
  fill_worker_env(flags.settings, options);
  return options;
}

Status run(const Flags& flags) {
  RT_ASSIGN(Settings settings, load_settings(flags.config, flags.settings));
  // Workers log there, too, also where --log-file names another place for this daemon.
  for (const char* below : {"logs", "sockets"})
    RT_TRY(daemon::claim_session(flags.session_dir, below));
  RT_TRY(daemon::start_log(flags, settings, "node-manager"));
  daemon::Notifier notifier;
  RT_ASSIGN(NodeManagerOptions options, make_options(flags, settings));
  become_subreaper();

  net::AsioLoop loop;
  Status outcome;
  NodeManager::Events events;
  events.on_ready = [&](const std::string& text) { notifier.ready(text); };
  events.on_status = [&](const std::string& text) { notifier.status(text); };
  events.on_stopping = [&](const std::string& why) { notifier.stopping(why); };
  events.on_stopped = [&](const Status& how) {
    outcome = how;
    loop.stop();
  };
  notifier.status(fmt::format("Joining the cluster of {}", flags.head_address));
  auto node = std::make_unique<NodeManager>(loop, std::move(options), std::move(events));
  daemon::EndWatch ends(loop, flags, [&](const std::string& why) {
    node->stop({proto::EXPECTED_TERMINATION, why, Code::kOk, kGentleStopUs});
  });
  RT_TRY(node->start());
  daemon::KeepAlive alive(loop, notifier);
  loop.run();
  node.reset();
  return outcome;
}

}  // namespace
}  // namespace rt::node

int main(int argc, char** argv) {
  return rt::daemon::run_main("ray-node-manager", argc, argv, rt::node::parse, rt::node::run);
}
