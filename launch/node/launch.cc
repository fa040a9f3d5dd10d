// start_node(): validate, bind, record, spawn, wait, publish, in this order: steps which can fail
// without leaving a trace come first, and whatever a killed starter leaves is recorded by then.
#include "launch/node/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/program.h"
#include "common/base/rng.h"
#include "common/config/misspelt_variables.h"
#include "common/config/settings.h"
#include "common/net/address.h"
#include "common/net/listen.h"
#include "common/net/probe.h"
#include "launch/node/detect.h"
#include "launch/node/internal.h"
#include "launch/node/session.h"
#include "launch/node/spawn.h"
#include "launch/node/starter_line.h"

namespace rt::launch {
namespace {

constexpr int kOwnAddressTimeoutMs = 1500;
constexpr size_t kLogTailBytes = 2000;

Status check_port(std::string_view option, int port) {
  if (port < 0 || port > 65535)
    return make_error(
        Code::kInvalid,
        fmt::format("{} is {}: it takes a port from 0 (any free one) to 65535", option, port));
  return {};
}

Result<std::string> choose_node_ip(const NodeOptions& options) {
  std::string ip = options.node_ip, source = "--node-ip-address";
  if (ip.empty()) {
    ip = environment("RAY_NODE_IP_ADDRESS");
    source = "RAY_NODE_IP_ADDRESS";
  }
  if (ip.empty()) {
    auto head = net::Address::parse(options.address);
    return net::detect_node_ip(!options.head && head ? head->host : "");
  }
  if (ip == "localhost") return std::string("127.0.0.1");
  in6_addr ignored;
  if (inet_pton(AF_INET, ip.c_str(), &ignored) != 1 &&
      inet_pton(AF_INET6, ip.c_str(), &ignored) != 1) {
    return make_error(
        Code::kInvalid,
        fmt::format("{} is '{}': it takes an IP address such as 10.0.0.5", source, ip));
  }
  return ip;
}

// Checks that the head will be able to listen at the address. Its port is the head's to choose.
Status check_dashboard_host(const std::string& host) {
  if (host.empty()) return {};
  auto fd = net::listen_on(net::Address::tcp(host, 0));
  if (!fd)
    return make_error(Code::kInvalid,
                      fmt::format("--dashboard-host is '{}', where this machine cannot listen: {}. "
                                  "127.0.0.1 is for this machine only, 0.0.0.0 for all others, too",
                                  host, fd.error().message));
  close(*fd);
  return {};
}

// Checks that others can reach this node at `ip`; `port` is bound by this process. Behind network
// address translation no interface has the address, but connections to it arrive all the same.
Status check_node_ip(const std::string& ip, int port, std::vector<std::string>* warnings) {
  if (net::is_of_this_machine(ip)) return {};
  net::Address here = net::Address::tcp(ip, port);
  if (net::is_listening(here, kOwnAddressTimeoutMs) != net::Listening::kYes) {
    return make_error(
        Code::kInvalid,
        fmt::format("the node's address {0} is on no interface of this machine, and {1} cannot be "
                    "reached from here: other nodes could not send this one anything. "
                    "Correct --node-ip-address (or RAY_NODE_IP_ADDRESS); without it {2} is used",
                    ip, here.to_string(), net::detect_node_ip()));
  }
  warnings->push_back(
      fmt::format("the node's address {} is on no interface of this machine; it is used because {} "
                  "can be reached",
                  ip, here.to_string()));
  return {};
}

std::string flag_of(const std::string& setting) {
  std::string flag = "--" + setting;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string tail_of(const std::string& path) {
  // One byte more tells whether there are lines before these, of which the last is cut.
  auto text = read_end_of_file(path, kLogTailBytes + 1);
  if (!text) return {};
  std::string_view tail = *text;
  if (tail.size() > kLogTailBytes) tail.remove_prefix(tail.find('\n') + 1);
  return std::string(trimmed(tail));
}

// The path without the current directory, which is another one where the path is used. Links stay,
// because the interpreter of a virtual environment is a link that says where the environment is.
std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::string found = std::filesystem::absolute(path, error).string();
  return error ? path : found;
}

// The absolute path of a program: a name with a slash is a path, any other is looked for in PATH.
// The error says only why there is none.
Result<std::string> program_at(const std::string& name) {
  std::string path = name;
  if (name.find('/') == std::string::npos) {
    path = find_program(name, environment("PATH"));
    if (path.empty()) return make_error(Code::kInvalid, "no directory of PATH has it");
  }
  if (const int why = why_not_runnable(path); why != 0)
    return make_error(Code::kInvalid, strerror(why));
  return absolute_path(path);
}

// The last words of a daemon: from its stderr if it wrote anything there (its reason to end), else
// from its log.
std::string words_of(const std::string& session_dir, const std::string& name) {
  std::string said = tail_of(fmt::format("{}/logs/{}.err", session_dir, name));
  if (said.empty()) {
    // For example, the log of ray-node-manager is node-manager.log.
    said = tail_of(fmt::format("{}/logs/{}.log", session_dir, name.substr(name.find('-') + 1)));
  }
  return said.empty() ? said : "It said:\n" + said;
}

// One start of one node. Unless publish() has succeeded, the destructor undoes everything.
class NodeStarter {
 public:
  NodeStarter(const NodeOptions& options, const std::string& settings_option)
      : options_(options), settings_option_(settings_option) {}
  ~NodeStarter() {
    if (published_) return;
    stop_processes(node_.processes, kCleanupGraceUs);
    // Unless they are reaped, the children of this process stay as zombies.
    for (const auto& process : node_.processes) reap_and_describe(process.pid);
    if (!session_.directory.empty()) remove_session(session_);
  }

  Result<StartedNode> run() {
    RT_TRY(validate());
    RT_TRY(bind_tcp());
    RT_ASSIGN(session_, make_session(options_.temp_dir));
    node_.session_dir = session_.directory;
    node_.session_name = session_.name;
    if (!options_.private_to_parent) RT_TRY(record_start());
    RT_TRY(bind_unix());
    RT_TRY(spawn_all());
    if (options_.wait_ready) RT_TRY(await_ready());
    RT_TRY(publish());
    return std::move(node_);
  }

 private:
  Status validate() {
    RT_TRY(check_port("--port", options_.port));
    RT_TRY(check_port("--dashboard-port", options_.dashboard.port.value_or(0)));
    RT_TRY(check_port("--node-manager-port", options_.node_manager_port));
    RT_TRY(check_port("--metrics-export-port", options_.metrics_export_port));
    RT_TRY(check_ports_differ());
    RT_TRY(check_temp_root(options_.temp_dir));
    std::vector<std::string> ignored;
    RT_ASSIGN(system_config_, translate_ray_names(options_.system_config, &ignored));
    if (!ignored.empty())
      node_.warnings.push_back(
          fmt::format("these settings of Ray's have no effect here: {} (docs/configuration.md "
                      "lists those that have)",
                      fmt::join(ignored, ", ")));
    RT_ASSIGN(settings_, load_settings(options_.config_file, system_config_, settings_option_));
    for (std::string& sentence : misspelt_variables())
      node_.warnings.push_back(std::move(sentence));
    RT_ASSIGN(node_.node_ip, choose_node_ip(options_));
    if (options_.dashboard.include) RT_TRY(check_dashboard_host(options_.dashboard.host));
    RT_ASSIGN(resources_, node_resources(options_, node_.node_ip, settings_.min_object_store_memory,
                                         settings_.object_store_memory));
    RT_ASSIGN(token_, options_.head && options_.private_to_parent
                          ? private_token()
                          : auth_token(/*create=*/options_.head));
    if (!options_.head) {
      RT_ASSIGN(auto head, net::Address::parse(options_.address));
      if (head.kind != net::Address::Kind::kTcp || head.port == 0) {
        return make_error(
            Code::kInvalid,
            fmt::format("--address is '{}': it takes HOST:PORT of the head", options_.address));
      }
      node_.head_address = options_.address;
    }
    Rng rng = Rng::from_system();
    node_.node_id_hex = NodeId::random(rng).hex();
    RT_TRY(choose_python());
    for (const char* name : {"ray-head", "ray-object-store", "ray-node-manager"}) {
      if (name == std::string_view("ray-head") && !options_.head) continue;
      RT_ASSIGN(programs_[name], daemon_path(name));
    }
    return {};
  }

  // The ports are compared here, because the error names both options. Whoever finds the port taken
  // later could not.
  Status check_ports_differ() const {
    std::vector<std::pair<int, const char*>> ports = {
        {options_.node_manager_port, "--node-manager-port"},
        {options_.metrics_export_port, "--metrics-export-port"}};
    if (options_.head) {
      ports.emplace_back(options_.port, "--port");
      if (options_.dashboard.include)
        ports.emplace_back(options_.dashboard.port.value_or(0), "--dashboard-port");
    }
    std::map<int, const char*> taken;
    for (const auto& [port, option] : ports) {
      if (port == 0) continue;
      const auto [first, added] = taken.emplace(port, option);
      if (!added)
        return make_error(Code::kInvalid, fmt::format("{} and {} are both {}: give each its own",
                                                      first->second, option, port));
    }
    return {};
  }

  // Finds the interpreter. Without it a node takes tasks and can run none of them.
  Status choose_python() {
    const bool named = options_.python_executable.empty();
    python_ = named ? environment("RAY_PYTHON") : options_.python_executable;
    if (python_.empty()) {
      // Without an interpreter there, the node can run tasks and actors in C++.
      python_ = "/usr/bin/python3";
      return {};
    }
    auto found = program_at(python_);
    if (!found)
      return make_error(
          Code::kInvalid,
          fmt::format("{} is '{}': the workers' interpreter cannot be run: {}",
                      named ? "RAY_PYTHON" : "python_executable", python_, found.error().message));
    python_ = std::move(*found);
    return {};
  }

  Status bind_tcp() {
    std::string host = listening_host(node_.node_ip);
    if (options_.head) {
      auto fd = net::listen_on(net::Address::tcp(host, options_.port));
      if (!fd) return cannot_listen(std::move(fd).error());
      head_listener_.reset(*fd);
      RT_ASSIGN(int port, net::bound_port(*fd));
      node_.head_address = net::Address::tcp(node_.node_ip, port).to_string();
    }
    RT_ASSIGN(int fd, net::listen_on_port(host, options_.node_manager_port, "--node-manager-port"));
    node_manager_listener_.reset(fd);
    RT_ASSIGN(node_.node_manager_port, net::bound_port(fd));
    RT_ASSIGN(int metrics,
              net::listen_on_port(host, options_.metrics_export_port, "--metrics-export-port"));
    metrics_listener_.reset(metrics);
    RT_ASSIGN(node_.metrics_export_port, net::bound_port(metrics));
    return check_node_ip(node_.node_ip, node_.node_manager_port, &node_.warnings);
  }

  Error cannot_listen(Error error) const {
    if (auto head = living_head(temp_root(options_.temp_dir), options_.port))
      error.message += fmt::format(
          "; a head runs there already: add this machine as a node of its cluster with "
          "`rayctl start --address={}`",
          *head);
    return error;
  }

  // Until publish(), the daemons end with this process, and `rayctl stop` finds them by their line.
  Status record_start() {
    RT_ASSIGN(starter_line_, StarterLine::create(session_.directory));
    return record_starting_node(node_);
  }

  Status bind_unix() {
    node_.node_manager_socket = session_.directory + "/sockets/raylet";
    node_.object_store_socket = session_.directory + "/sockets/plasma_store";
    RT_ASSIGN(int raylet, net::listen_on(net::Address::unix_socket(node_.node_manager_socket)));
    raylet_listener_.reset(raylet);
    RT_ASSIGN(int store, net::listen_on(net::Address::unix_socket(node_.object_store_socket)));
    store_listener_.reset(store);
    return {};
  }

  // Makes the request with everything that all daemons get. The inherited descriptors are the
  // `listeners`, then the lifeline or the starter's line.
  SpawnRequest request_for(const std::string& name, std::vector<int> listeners) {
    SpawnRequest request;
    request.name = name;
    request.executable = programs_[name];
    request.inherit = std::move(listeners);
    request.output_file = fmt::format("{}/logs/{}.err", session_.directory, name);
    request.arguments = {"--session-dir", session_.directory};
    add(request, {options_.private_to_parent ? "--lifeline-fd" : "--starter-fd",
                  std::to_string(kFirstInheritedFd + request.inherit.size())});
    request.inherit.push_back(options_.private_to_parent ? lifeline_.get()
                                                         : starter_line_.reading_end());
    if (!options_.config_file.empty()) {
      std::error_code error;
      request.arguments.insert(
          request.arguments.end(),
          {"--config", std::filesystem::absolute(options_.config_file, error).string()});
    }
    for (const auto& [setting, value] : system_config_)
      request.arguments.push_back(flag_of(setting) + "=" + value);
    // The token is passed by the environment, because everyone on the machine can read a command
    // line.
    request.environment["RAY_AUTH_TOKEN"] = token_.empty() ? std::nullopt : std::optional(token_);
    request.environment["RAY_AUTH_MODE"] =
        token_.empty() ? std::optional<std::string>("disabled") : std::nullopt;
    request.environment["NOTIFY_SOCKET"] = ready_ ? std::optional(ready_->name()) : std::nullopt;
    return request;
  }

  static void add(SpawnRequest& request, std::initializer_list<std::string> arguments) {
    request.arguments.insert(request.arguments.end(), arguments);
  }

  SpawnRequest head_request() {
    SpawnRequest request = request_for("ray-head", {head_listener_.get()});
    add(request, {"--listen-fd", std::to_string(kFirstInheritedFd)});
    std::error_code error;
    if (!options_.dashboard.include) add(request, {"--include-dashboard=false"});
    if (!options_.dashboard.host.empty())
      add(request, {"--dashboard-host", options_.dashboard.host});
    if (options_.dashboard.port)
      add(request, {"--dashboard-port", std::to_string(*options_.dashboard.port)});
    if (!options_.state_dir.empty())
      add(request, {"--state-dir", std::filesystem::absolute(options_.state_dir, error).string()});
    return request;
  }

  SpawnRequest store_request() {
    SpawnRequest request = request_for("ray-object-store", {store_listener_.get()});
    add(request,
        {"--unix-listen-fd", std::to_string(kFirstInheritedFd), "--socket",
         node_.object_store_socket, "--node-id", node_.node_id_hex, "--node-ip", node_.node_ip});
    if (resources_.object_store_memory > 0)
      add(request, {"--memory", std::to_string(resources_.object_store_memory)});
    if (!options_.plasma_directory.empty())
      add(request, {"--directory", options_.plasma_directory});
    return request;
  }

  SpawnRequest node_manager_request() {
    SpawnRequest request = request_for(
        "ray-node-manager",
        {node_manager_listener_.get(), raylet_listener_.get(), metrics_listener_.get()});
    add(request, {"--listen-fd", std::to_string(kFirstInheritedFd), "--unix-listen-fd",
                  std::to_string(kFirstInheritedFd + 1), "--metrics-listen-fd",
                  std::to_string(kFirstInheritedFd + 2), "--socket", node_.node_manager_socket,
                  "--head-address", node_.head_address, "--store-socket", node_.object_store_socket,
                  "--node-ip", node_.node_ip, "--node-name",
                  options_.node_name.empty() ? node_.node_ip : options_.node_name, "--node-id",
                  node_.node_id_hex});
    if (options_.head) add(request, {"--is-head-node"});
    add(request, {"--resources", nlohmann::json(resources_.totals).dump()});
    if (!options_.labels.empty())
      add(request, {"--labels", nlohmann::json(options_.labels).dump()});
    add(request, {"--python", python_});
    return request;
  }

  Status spawn_all() {
    if (options_.wait_ready) {
      RT_ASSIGN(ready_, ReadySocket::create());
    }
    if (options_.private_to_parent) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return errno_error("cannot make a pipe", errno);
      lifeline_.reset(ends[0]);
      lifeline_write_end_.reset(ends[1]);
    }
    // The node-manager comes first, because it starts a Python interpreter, which takes longest.
    RT_TRY(spawn_one(node_manager_request()));
    if (options_.head) {
      RT_TRY(spawn_one(head_request()));
      // The head comes first, because people read of it first.
      std::swap(node_.processes[0], node_.processes[1]);
    }
    RT_TRY(spawn_one(store_request()));
    // With our copies closed, the end of a daemon closes its socket, and clients that wait for it
    // notice.
    for (Fd* listener : {&head_listener_, &node_manager_listener_, &metrics_listener_,
                         &raylet_listener_, &store_listener_})
      listener->reset();
    return {};
  }

  Status spawn_one(const SpawnRequest& request) {
    RT_ASSIGN(StartedProcess process, spawn(request));
    node_.processes.push_back(std::move(process));
    return {};
  }

  Status await_ready() {
    std::string culprit;
    Status ready = ready_->wait(node_.processes, kReadyTimeoutUs, &culprit);
    if (ready) return {};
    std::string said = words_of(session_.directory, culprit);
    Error error = ready.error();
    error.message += said.empty() ? " and left no message" : ". " + said;
    return error;
  }

  Status publish() {
    if (!options_.private_to_parent) {
      RT_TRY(record_node(session_, node_));
      RT_TRY(starter_line_.release());
    } else if (options_.head) {
      record_private_head(session_, node_);
    }
    point_latest(session_);
    node_.lifeline_fd = lifeline_write_end_.release();
    published_ = true;
    return {};
  }

  const NodeOptions& options_;
  const std::string& settings_option_;
  Settings settings_;
  std::map<std::string, std::string> system_config_;  // The settings under our names.
  std::string python_;                                // The interpreter of the workers.
  NodeResources resources_;
  std::string token_;
  std::map<std::string, std::string> programs_;
  Session session_;
  Fd head_listener_, node_manager_listener_, metrics_listener_, raylet_listener_, store_listener_;
  Fd lifeline_, lifeline_write_end_;  // For a node that is private to its parent.
  StarterLine starter_line_;          // For any other node.
  std::optional<ReadySocket> ready_;
  StartedNode node_;
  bool published_ = false;
};

}  // namespace

// Returns the host to listen on. A node known by a loopback address is for this machine only. Any
// other is reached by its address and, from this machine, by loopback.
std::string listening_host(const std::string& node_ip) {
  if (node_ip.starts_with("127.") || node_ip == "::1") return node_ip;
  return node_ip.find(':') == std::string::npos ? "0.0.0.0" : "::";
}

Result<StartedNode> start_node(const NodeOptions& options, const std::string& settings_option) {
  return NodeStarter(options, settings_option).run();
}

std::string last_words(const StartedNode& node, const std::string& process) {
  return words_of(node.session_dir, process);
}

}  // namespace rt::launch
