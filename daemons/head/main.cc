// ray-head: the cluster's coordinator. Flags in docs/daemon-flags.md.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/program_options.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/config/settings.h"
#include "common/net/asio_loop.h"
#include "daemons/head/service/head_server.h"

namespace {

namespace options = boost::program_options;
using namespace rt;

struct Flags {
  std::string config, host = "0.0.0.0", session_dir, state_dir, log_file, token_file, cluster_id;
  int port = 6379, listen_fd = -1, lifeline_fd = -1;
  std::map<std::string, std::string> settings;
};

std::string flag_of(std::string setting) {
  for (char& c : setting) c = c == '_' ? '-' : c;
  return setting;
}

Status check(const Flags& flags) {
  if (flags.session_dir.empty() && flags.state_dir.empty()) return make_error(Code::kInvalid, "--session-dir DIR or --state-dir DIR is missing: where shall the head keep its state?");
  if (flags.port < 0 || flags.port > 65535) return make_error(Code::kInvalid, fmt::format("--port {}: 0 (any free port) to 65535", flags.port));
  if (!flags.cluster_id.empty() && !ClusterId::is_valid(from_hex(flags.cluster_id)))
    return make_error(Code::kInvalid, fmt::format("--cluster-id {}: {} hex digits expected", flags.cluster_id, 2 * ClusterId::kSize));
  return {};
}

// Nothing: --help was answered.
Result<std::optional<Flags>> parse_flags(int argc, char** argv) {
  Flags flags;
  options::options_description known("ray-head: the coordinator of a cluster");
  known.add_options()("help,h", "this text")
      ("config", options::value(&flags.config), "JSON file with settings")
      ("port", options::value(&flags.port), "TCP port to listen on (0: any free one)")
      ("host", options::value(&flags.host), "address to listen on")
      ("listen-fd", options::value(&flags.listen_fd), "inherited listening TCP socket instead")
      ("session-dir", options::value(&flags.session_dir), "logs go to DIR/logs, state to DIR")
      ("state-dir", options::value(&flags.state_dir), "keep the durable state here instead")
      ("log-file", options::value(&flags.log_file), "log here instead")
      ("lifeline-fd", options::value(&flags.lifeline_fd), "end when this descriptor reaches end of file")
      ("token-file", options::value(&flags.token_file), "file with the cluster token (default: $RAY_AUTH_TOKEN)")
      ("cluster-id", options::value(&flags.cluster_id), "id of a new cluster, hex (default: random)");
  options::options_description settings("settings");
  std::map<std::string, std::string> texts;
  for (const SettingInfo& info : setting_table())
    settings.add_options()(flag_of(info.name).c_str(), options::value(&texts[info.name]), fmt::format("{} ({}, default {})", info.meaning, info.unit, info.default_value).c_str());
  options::options_description all;
  all.add(known).add(settings);
  options::variables_map given;
  try {
    int style = options::command_line_style::default_style & ~options::command_line_style::allow_guessing;
    options::store(options::command_line_parser(argc, argv).options(all).positional({}).style(style).run(), given);
    options::notify(given);
  } catch (const options::error& error) {
    return make_error(Code::kInvalid, fmt::format("{} (see --help)", error.what()));
  }
  if (given.count("help")) {
    std::cout << all;
    return std::optional<Flags>();
  }
  for (auto& [name, text] : texts) {
    if (given.count(flag_of(name))) flags.settings[name] = text;
  }
  RT_TRY(check(flags));
  return std::optional<Flags>(std::move(flags));
}

Result<std::string> read_token(const Flags& flags) {
  const char* mode = std::getenv("RAY_AUTH_MODE");
  if (mode && std::strcmp(mode, "disabled") == 0) return std::string();
  if (flags.token_file.empty()) {
    const char* token = std::getenv("RAY_AUTH_TOKEN");
    if (token && *token) return std::string(token);
    return make_error(Code::kInvalid, "there is no cluster token: give --token-file FILE or RAY_AUTH_TOKEN, or RAY_AUTH_MODE=disabled to let everyone in");
  }
  std::ifstream file(flags.token_file);
  std::string token;
  if (!file || !(file >> token)) return make_error(Code::kIo, fmt::format("--token-file {}: cannot be read or is empty", flags.token_file));
  return token;
}

// How others reach what listens on `fd`.
Result<std::string> advertised_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return errno_error("the listening socket has no address", errno);
  char text[INET6_ADDRSTRLEN] = "";
  bool any = false;
  int port = 0;
  if (storage.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    any = address.sin_addr.s_addr == INADDR_ANY;
    port = ntohs(address.sin_port);
  } else if (storage.ss_family == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
    ::inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
    any = IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr);
    port = ntohs(address.sin6_port);
  } else {
    return make_error(Code::kInvalid, "--listen-fd is no TCP socket");
  }
  return net::Address::tcp(any ? net::detect_node_ip() : text, port).to_string();
}

// systemd's protocol: one datagram to $NOTIFY_SOCKET ('@': abstract).
void notify_ready() {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!path || !*path || std::strlen(path) >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;
  int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  constexpr std::string_view kReady = "READY=1";
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  if (::sendto(fd, kReady.data(), kReady.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), length) < 0) RT_WARN("cannot tell {} that the head is ready: {}", path, std::strerror(errno));
  ::close(fd);
}

void start_log(const Flags& flags, const Settings& settings) {
  LogOptions log;
  log.component = "head";
  log.level = parse_log_level(settings.log_level, LogLevel::kInfo);
  log.file = !flags.log_file.empty() ? flags.log_file : !flags.session_dir.empty() ? flags.session_dir + "/logs/head.log" : "";
  log.max_file_bytes = static_cast<size_t>(settings.log_rotation_bytes);
  init_log(log);
}

Result<head::HeadServer::Options> server_options(const Flags& flags, const Settings& settings, const std::string& address) {
  head::HeadServer::Options out;
  out.core.settings = settings;
  std::filesystem::path named(flags.session_dir.empty() ? flags.state_dir : flags.session_dir);
  out.core.session_name = (named.has_filename() ? named : named.parent_path()).filename().string();
  out.core.head_address = address;
  out.core.cluster_id = from_hex(flags.cluster_id);
  out.core.seed = Rng::from_system().next();
  out.state_dir = flags.state_dir.empty() ? flags.session_dir : flags.state_dir;
  RT_ASSIGN(out.token, read_token(flags));
  return out;
}

Status run(const Flags& flags) {
  RT_ASSIGN(Settings settings, load_settings(flags.config, flags.settings));
  start_log(flags, settings);
  int fd = flags.listen_fd;
  if (fd < 0) {
    RT_ASSIGN(fd, net::listen_on(net::Address::tcp(flags.host, flags.port)));
  }
  RT_ASSIGN(std::string address, advertised_address(fd));
  RT_ASSIGN(auto options, server_options(flags, settings, address));

  net::AsioLoop loop;
  options.on_stop = [&loop] { loop.stop(); };
  RT_ASSIGN(auto server, head::HeadServer::open(loop, std::move(options)));
  loop.on_signals({SIGTERM, SIGINT}, [&loop](int signal) {
    RT_INFO("signal {}: stopping", signal);
    loop.stop();
  });
  std::unique_ptr<net::FdWatch> lifeline;
  if (flags.lifeline_fd >= 0) {
    lifeline = loop.watch_readable(flags.lifeline_fd, [&] {
      char byte;
      if (::read(flags.lifeline_fd, &byte, 1) != 0) return;
      RT_INFO("the process this head belongs to has ended: stopping");
      loop.stop();
    });
  }
  Status outcome;
  server->start(fd, [&](const Status& started) {
    if (!started) {
      outcome = started;
      return loop.stop();
    }
    RT_INFO("cluster {} at {}, incarnation {}", to_hex(server->core().cluster_id()), address, server->core().incarnation());
    notify_ready();
  });
  loop.run();
  lifeline.reset();
  server.reset();
  RT_INFO("stopped");
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);   // a file size limit is an error of the write, like a full disk
  auto flags = parse_flags(argc, argv);
  if (!flags) {
    std::fprintf(stderr, "ray-head: %s\n", flags.error().message.c_str());
    return 2;
  }
  if (!*flags) return 0;
  Status done = run(**flags);
  if (done) return 0;
  const Flags& given = **flags;
  if (!given.log_file.empty() || !given.session_dir.empty()) RT_ERROR("{}", done.error().message);   // else the log is stderr
  flush_log();
  std::fprintf(stderr, "ray-head: %s\n", done.error().message.c_str());
  return done.error().code == Code::kInvalid ? 2 : 1;
}
