// ray-object-store: the node's shared memory. Flags in docs/daemon-flags.md.
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/program_options.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/config/settings.h"
#include "common/net/asio_loop.h"
#include "daemons/object_store/service/store_service.h"

namespace {

namespace options = boost::program_options;
using namespace rt;

struct Flags {
  std::string config, socket, host = "127.0.0.1", session_dir, log_file, token_file, node_ip, node_name, node_id, directory;
  int port = -1, unix_listen_fd = -1, lifeline_fd = -1;
  std::optional<int64_t> memory;
  std::map<std::string, std::string> settings;
};

// Nothing: --help was answered.
Result<std::optional<Flags>> parse_flags(int argc, char** argv) {
  Flags flags;
  int64_t memory = 0;
  options::options_description known("ray-object-store: the shared-memory objects of one node");
  known.add_options()("help,h", "this text")
      ("config", options::value(&flags.config), "JSON file with settings")
      ("socket", options::value(&flags.socket), "Unix socket to listen on")
      ("unix-listen-fd", options::value(&flags.unix_listen_fd), "inherited listening Unix socket (its path: --socket)")
      ("port", options::value(&flags.port), "TCP port of its own (0: any); without it other nodes come through the node-manager")
      ("host", options::value(&flags.host), "address to listen on with --port")
      ("session-dir", options::value(&flags.session_dir), "logs go to DIR/logs")
      ("log-file", options::value(&flags.log_file), "log here instead")
      ("lifeline-fd", options::value(&flags.lifeline_fd), "end when this descriptor reaches end of file")
      ("token-file", options::value(&flags.token_file), "file with the cluster token (default: $RAY_AUTH_TOKEN)")
      ("node-ip", options::value(&flags.node_ip), "address of this node")
      ("node-name", options::value(&flags.node_name), "name of this node, for logs")
      ("node-id", options::value(&flags.node_id), "id of this node, hex")
      ("memory", options::value(&memory), "capacity in bytes (default: setting object_store_memory)")
      ("directory", options::value(&flags.directory), "where the memory's file lives (default: /dev/shm)");
  options::options_description settings("settings");
  std::map<std::string, std::string> texts;
  for (const SettingInfo& info : setting_table()) {
    std::string flag = info.name;
    for (char& c : flag) c = c == '_' ? '-' : c;
    settings.add_options()(flag.c_str(), options::value(&texts[info.name]), fmt::format("{} ({}, default {})", info.meaning, info.unit, info.default_value).c_str());
  }
  options::options_description all;
  all.add(known).add(settings);
  options::variables_map given;
  try {
    options::store(options::command_line_parser(argc, argv).options(all).positional({}).run(), given);
    options::notify(given);
  } catch (const options::error& error) {
    return make_error(Code::kInvalid, fmt::format("{} (see --help)", error.what()));
  }
  if (given.count("help")) {
    std::ostringstream text;
    text << all;
    std::fputs(text.str().c_str(), stdout);
    return std::optional<Flags>();
  }
  if (given.count("memory")) {
    if (memory <= 0) return make_error(Code::kInvalid, fmt::format("--memory {}: bytes, more than 0", memory));
    flags.memory = memory;
  }
  for (auto& [name, text] : texts) {
    std::string flag = name;
    for (char& c : flag) c = c == '_' ? '-' : c;
    if (given.count(flag)) flags.settings[name] = text;
  }
  if (flags.port < -1 || flags.port > 65535) return make_error(Code::kInvalid, fmt::format("--port {}: 0 (any free port) to 65535", flags.port));
  if (flags.socket.empty() && flags.unix_listen_fd < 0) return make_error(Code::kInvalid, "--socket PATH is missing: where shall clients on this node connect?");
  if (!flags.node_id.empty() && !NodeId::is_valid(from_hex(flags.node_id))) return make_error(Code::kInvalid, fmt::format("--node-id {}: {} hex digits expected", flags.node_id, 2 * NodeId::kSize));
  return std::optional<Flags>(std::move(flags));
}

Result<std::string> read_token(const Flags& flags) {
  if (flags.token_file.empty()) {
    const char* token = std::getenv("RAY_AUTH_TOKEN");
    if (token && *token) return std::string(token);
    // Also without a port of its own: the node-manager passes on who asks for the store over TCP.
    const char* mode = std::getenv("RAY_AUTH_MODE");
    if (mode && std::strcmp(mode, "disabled") == 0) return std::string();
    return make_error(Code::kInvalid, "there is no cluster token: give --token-file FILE or RAY_AUTH_TOKEN, or RAY_AUTH_MODE=disabled to let everyone in");
  }
  std::ifstream file(flags.token_file);
  std::string token;
  if (!file || !(file >> token)) return make_error(Code::kIo, fmt::format("--token-file {}: cannot be read or is empty", flags.token_file));
  return token;
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
  if (::sendto(fd, kReady.data(), kReady.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), length) < 0) RT_WARN("cannot tell {} that the object store is ready: {}", path, std::strerror(errno));
  ::close(fd);
}

Status run(const Flags& flags) {
  RT_ASSIGN(Settings settings, load_settings(flags.config, flags.settings));
  LogOptions log;
  log.component = "object_store";
  log.level = parse_log_level(settings.log_level, LogLevel::kInfo);
  log.file = !flags.log_file.empty() ? flags.log_file : !flags.session_dir.empty() ? flags.session_dir + "/logs/object_store.log" : "";
  log.max_file_bytes = static_cast<size_t>(settings.log_rotation_bytes);
  init_log(log);

  store::Arena::Options arena_options;
  arena_options.directory = flags.directory;
  arena_options.capacity = flags.memory.value_or(settings.object_store_memory);
  arena_options.min_capacity = settings.min_object_store_memory;
  RT_ASSIGN(std::unique_ptr<store::Arena> arena, store::Arena::create(arena_options));
  int64_t capacity = arena->capacity();
  std::string place = arena->place();

  net::AsioLoop loop;
  store::StoreService::Options service_options;
  service_options.identity.role = "object_store";
  RT_ASSIGN(service_options.identity.token, read_token(flags));
  if (!flags.node_id.empty()) {
    service_options.node = NodeId::from_hex(flags.node_id);
  } else {
    Rng rng = Rng::from_system();
    service_options.node = NodeId::random(rng);
  }
  service_options.identity.id = service_options.node.binary();
  service_options.on_stop = [&loop] { loop.stop(); };
  store::StoreService service(loop, settings, std::move(arena), std::move(service_options));
  if (flags.unix_listen_fd >= 0) {
    RT_TRY(service.listen_fd(flags.unix_listen_fd));
  } else {
    RT_TRY(service.listen(net::Address::unix_socket(flags.socket)));
  }
  if (flags.port >= 0) RT_TRY(service.listen(net::Address::tcp(flags.host, flags.port)));
  loop.on_signals({SIGTERM, SIGINT}, [&loop](int) { loop.stop(); });
  std::unique_ptr<net::FdWatch> lifeline;
  if (flags.lifeline_fd >= 0) {
    lifeline = loop.watch_readable(flags.lifeline_fd, [&] {
      char byte;
      if (::read(flags.lifeline_fd, &byte, 1) == 0) loop.stop();
    });
  }
  RT_INFO("object store of node {} ready: {} bytes in {}, socket {}, pid {}", flags.node_name.empty() ? flags.node_ip : flags.node_name, capacity, place, flags.socket, ::getpid());
  notify_ready();
  loop.run();
  RT_INFO("object store ends");
  lifeline.reset();
  if (flags.unix_listen_fd >= 0 && !flags.socket.empty()) ::unlink(flags.socket.c_str());   // bound for us: nobody else removes it
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  auto flags = parse_flags(argc, argv);
  if (!flags) {
    std::fprintf(stderr, "ray-object-store: %s\n", flags.error().message.c_str());
    return 2;
  }
  if (!*flags) return 0;
  rt::Status status = run(**flags);
  if (!status) {
    const rt::Error& error = status.error();
    if (!(*flags)->log_file.empty() || !(*flags)->session_dir.empty()) RT_ERROR("{}", error.message);
    rt::flush_log();
    std::fprintf(stderr, "ray-object-store: %s\n", error.message.c_str());
    return error.code == rt::Code::kInvalid ? 2 : 1;
  }
  return 0;
}
