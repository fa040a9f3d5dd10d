// ray-node-manager: flags, settings, signals; everything else is in service/.
#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/net/asio_loop.h"
#include "daemons/node_manager/service/node_manager.h"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace rt::node {
namespace {

std::string dashed(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : c;
  return name;
}

po::options_description flag_table() {
  po::options_description flags("ray-node-manager: leases, workers and actors of one node");
  auto add = flags.add_options();
  add("help", "show this text");
  add("config", po::value<std::string>()->default_value(""), "settings as a JSON file");
  add("port", po::value<int>()->default_value(0), "TCP port of the node; 0: any");
  add("host", po::value<std::string>()->default_value(""), "TCP address to listen on; default: --node-ip");
  add("listen-fd", po::value<int>()->default_value(-1), "inherited TCP listening socket");
  add("unix-listen-fd", po::value<int>()->default_value(-1), "inherited Unix listening socket");
  add("socket", po::value<std::string>()->default_value(""), "Unix socket; default: SESSION/sockets/raylet");
  add("session-dir", po::value<std::string>()->default_value(""), "session directory");
  add("log-file", po::value<std::string>()->default_value(""), "default: SESSION/logs/node-manager.log, or stderr");
  add("lifeline-fd", po::value<int>()->default_value(-1), "end when this descriptor reaches end of file");
  add("token-file", po::value<std::string>()->default_value(""), "file with the cluster token; default: $RAY_AUTH_TOKEN");
  add("head-address", po::value<std::string>()->default_value(""), "HOST:PORT of the head");
  add("store-socket", po::value<std::string>()->default_value(""), "the node's object store");
  add("node-ip", po::value<std::string>()->default_value(""), "address other nodes reach this one by");
  add("node-name", po::value<std::string>()->default_value(""), "name of the node; default: its address");
  add("node-id", po::value<std::string>()->default_value(""), "hex id; default: random");
  add("resources", po::value<std::string>()->default_value(""), "all totals as JSON, e.g. {\"CPU\": 2}; default: what the machine has");
  add("labels", po::value<std::string>()->default_value(""), "labels as JSON");
  add("is-head-node", po::bool_switch(), "this node runs beside the head");
  add("python", po::value<std::string>()->default_value("/usr/bin/python3"), "interpreter of the workers");
  add("python-path", po::value<std::string>()->default_value(""), "directory that holds the ray package");
  for (const SettingInfo& setting : setting_table()) add(dashed(setting.name).c_str(), po::value<std::string>(), setting.meaning.c_str());
  return flags;
}

Result<std::string> read_token(const std::string& file) {
  if (file.empty()) {
    const char* token = std::getenv("RAY_AUTH_TOKEN");
    if (token && *token) return std::string(token);
    const char* mode = std::getenv("RAY_AUTH_MODE");
    if (mode && std::strcmp(mode, "disabled") == 0) return std::string();
    return make_error(Code::kInvalid, "there is no cluster token: give --token-file FILE or RAY_AUTH_TOKEN, or RAY_AUTH_MODE=disabled to let everyone in");
  }
  std::ifstream in(file);
  std::string token;
  if (!(in >> token)) return make_error(Code::kIo, fmt::format("the token file {} cannot be read or is empty", file));
  return token;
}

Result<ResourceSet> parse_resources(const std::string& text, const std::string& node_ip, bool is_head) {
  std::map<std::string, double> amounts;
  if (text.empty()) {
    amounts["CPU"] = std::max(1u, std::thread::hardware_concurrency());
    amounts["memory"] = static_cast<double>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 2;
  } else {
    auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return make_error(Code::kInvalid, fmt::format("--resources is not a JSON object: {}", text));
    for (const auto& [name, value] : json.items()) {
      if (!value.is_number()) return make_error(Code::kInvalid, fmt::format("--resources: '{}' must be a number, not {}", name, value.dump()));
      amounts[name] = value.get<double>();
    }
  }
  amounts.try_emplace("node:" + node_ip, 1);
  if (is_head) amounts.try_emplace("node:__internal_head__", 1);
  return ResourceSet::from_map(amounts);
}

Result<std::map<std::string, std::string>> parse_labels(const std::string& text) {
  std::map<std::string, std::string> labels;
  if (text.empty()) return labels;
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return make_error(Code::kInvalid, fmt::format("--labels is not a JSON object: {}", text));
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) return make_error(Code::kInvalid, fmt::format("--labels: '{}' must be a string, not {}", name, value.dump()));
    labels[name] = value.get<std::string>();
  }
  return labels;
}

std::string executable_dir() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec).parent_path().string();
}

// The directory with the `ray` package: of a build tree, or an installation.
std::string find_python_path(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code ec;
  for (const char* relative : {"/../python", "/../lib/ray-runtime/python"}) {
    fs::path candidate = fs::path(executable_dir() + relative).lexically_normal();
    if (fs::exists(candidate / "ray", ec)) return candidate.string();
  }
  return fs::path(executable_dir() + "/../python").lexically_normal().string();
}

void fill_worker_env(const std::map<std::string, std::string>& setting_flags, NodeManagerOptions& options) {
  options.worker_env["RAY_RAYLET_PID"] = std::to_string(::getpid());
  // Before any task has said how many CPUs it has; math libraries would take all of them.
  if (!std::getenv("OMP_NUM_THREADS")) options.worker_env["OMP_NUM_THREADS"] = "1";
  for (const auto& [name, value] : setting_flags) options.worker_env["RAY_" + name] = value;
}

Result<NodeManagerOptions> make_options(const po::variables_map& flags) {
  NodeManagerOptions options;
  std::map<std::string, std::string> setting_flags;
  for (const SettingInfo& setting : setting_table()) {
    if (flags.count(dashed(setting.name))) setting_flags[setting.name] = flags[dashed(setting.name)].as<std::string>();
  }
  auto text = [&](const char* name) { return flags[name].as<std::string>(); };
  RT_ASSIGN(options.settings, load_settings(text("config"), setting_flags));
  if (text("head-address").empty()) return make_error(Code::kInvalid, "--head-address HOST:PORT is needed: the head of the cluster to join");
  RT_ASSIGN(options.head, net::Address::parse(text("head-address")));
  if (text("session-dir").empty()) return make_error(Code::kInvalid, "--session-dir DIR is needed: logs and sockets go there");
  options.session_dir = fs::absolute(text("session-dir")).lexically_normal().string();
  std::error_code ec;
  for (const char* sub : {"/logs", "/sockets"}) {
    fs::create_directories(options.session_dir + sub, ec);
    if (ec) return make_error(Code::kIo, fmt::format("cannot create {}{}: {}", options.session_dir, sub, ec.message()));
  }
  options.socket_path = text("socket").empty() ? options.session_dir + "/sockets/raylet" : fs::absolute(text("socket")).lexically_normal().string();
  options.unix_listen_fd = flags["unix-listen-fd"].as<int>();
  options.tcp_listen_fd = flags["listen-fd"].as<int>();
  options.store_socket = text("store-socket");
  RT_ASSIGN(options.token, read_token(text("token-file")));
  options.node_ip = text("node-ip");
  if (options.node_ip.empty()) options.node_ip = options.head.host == "127.0.0.1" || options.head.host == "localhost" ? "127.0.0.1" : net::detect_node_ip();
  int port = flags["port"].as<int>();
  if (port < 0 || port > 65535) return make_error(Code::kInvalid, fmt::format("--port {}: 0 (any free port) to 65535", port));
  options.tcp = net::Address::tcp(text("host").empty() ? options.node_ip : text("host"), port);
  options.node_name = text("node-name");
  Rng rng = Rng::from_system();
  options.seed = rng.next();
  options.node_id = text("node-id").empty() ? NodeId::random(rng) : NodeId::from_hex(text("node-id"));
  if (options.node_id.is_nil()) return make_error(Code::kInvalid, fmt::format("--node-id '{}' is not an id of {} hex digits", text("node-id"), NodeId::kSize * 2));
  options.is_head_node = flags["is-head-node"].as<bool>();
  RT_ASSIGN(options.total, parse_resources(text("resources"), options.node_ip, options.is_head_node));
  RT_ASSIGN(options.labels, parse_labels(text("labels")));
  options.labels.try_emplace("ray.io/node-id", options.node_id.hex());
  options.python = text("python");
  options.python_path = find_python_path(text("python-path"));
  options.cpp_worker = executable_dir() + "/ray-cpp-worker";
  fill_worker_env(setting_flags, options);
  return options;
}

// systemd's protocol; `path` is $NOTIFY_SOCKET.
void notify_ready(const std::string& notify_socket) {
  const char* path = notify_socket.c_str();
  if (!*path) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = 0;   // an abstract name
  int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  static constexpr char kReady[] = "READY=1";
  socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  if (::sendto(fd, kReady, sizeof kReady - 1, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), size) < 0) {
    RT_WARN("cannot tell NOTIFY_SOCKET {} that the node is ready: {}", path, std::strerror(errno));
  }
  ::close(fd);
}

int run(const po::variables_map& flags) {
  auto options = make_options(flags);
  if (!options) {
    std::cerr << "ray-node-manager: " << options.error().message << "\n";
    return 2;
  }
  LogOptions log;
  log.component = "node-manager";
  log.file = flags["log-file"].as<std::string>().empty() ? options->session_dir + "/logs/node-manager.log" : flags["log-file"].as<std::string>();
  log.level = parse_log_level(options->settings.log_level, LogLevel::kInfo);
  log.max_file_bytes = static_cast<size_t>(options->settings.log_rotation_bytes);
  init_log(log);
  ::signal(SIGPIPE, SIG_IGN);
  become_subreaper();
  // Not for the workers.
  std::string notify = std::getenv("NOTIFY_SOCKET") ? std::getenv("NOTIFY_SOCKET") : "";
  ::unsetenv("NOTIFY_SOCKET");

  net::AsioLoop loop;
  int exit_code = 0;
  int lifeline = flags["lifeline-fd"].as<int>();
  NodeManager::Events events;
  events.on_ready = [&] { notify_ready(notify); };
  events.on_stopped = [&](int code, const std::string& why) {
    exit_code = code;
    if (code != 0) std::cerr << "ray-node-manager: " << why << "\n";
    loop.stop();
  };
  auto node = std::make_unique<NodeManager>(loop, std::move(*options), std::move(events));
  loop.on_signals({SIGTERM, SIGINT}, [&](int signal) {
    node->stop({1, fmt::format("received signal {}", signal), 0, lifeline >= 0 ? kQuickStopUs : kGentleStopUs});
  });
  std::unique_ptr<net::FdWatch> lifeline_watch;
  if (lifeline >= 0) {
    lifeline_watch = loop.watch_readable(lifeline, [&] {
      char ignored[256];
      ssize_t n = ::read(lifeline, ignored, sizeof ignored);
      if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
      loop.post([&] { lifeline_watch.reset(); });   // not from inside its own callback
      node->stop({1, "the process this cluster belongs to ended", 0, kQuickStopUs});
    });
  }
  Status started = node->start();
  if (!started) {
    RT_ERROR("{}", started.error().message);
    std::cerr << "ray-node-manager: " << started.error().message << "\n";
    return 1;
  }
  loop.run();
  node.reset();
  flush_log();
  return exit_code;
}

}  // namespace
}  // namespace rt::node

int main(int argc, char** argv) {
  po::options_description table = rt::node::flag_table();
  po::variables_map flags;
  try {
    po::store(po::command_line_parser(argc, argv).options(table).positional({}).style(po::command_line_style::unix_style ^ po::command_line_style::allow_guessing).run(), flags);
    po::notify(flags);
  } catch (const po::error& error) {
    std::cerr << "ray-node-manager: " << error.what() << " (see --help)\n";
    return 2;
  }
  if (flags.count("help")) {
    std::cout << table << "\n";
    return 0;
  }
  return rt::node::run(flags);
}
