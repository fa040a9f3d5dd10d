// ray-object-store: the node's shared memory. Its flags are described in docs/daemon-flags.md.
#include <fmt/core.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "common/base/log.h"
#include "common/base/rng.h"
#include "daemons/object_store/service/store_service.h"
#include "launch/daemon/notify.h"
#include "launch/daemon/process.h"
#include "launch/node/detect.h"

namespace rt::store {
namespace {

struct Flags : daemon::Flags {
  std::string socket, host = "127.0.0.1", node_ip, node_name, node_id, directory;
  int port = -1, unix_listen_fd = -1;
  std::optional<int64_t> memory;
};

Status check(const Flags& flags) {
  if (flags.memory && *flags.memory <= 0)
    return make_error(Code::kInvalid,
                      fmt::format("--memory {}: bytes, more than 0", *flags.memory));
  if (flags.socket.empty() && flags.unix_listen_fd < 0)
    return make_error(Code::kInvalid,
                      "--socket PATH is missing: where shall clients on this node connect?");
  if (!flags.node_id.empty() && !NodeId::is_valid(from_hex(flags.node_id)))
    return make_error(Code::kInvalid, fmt::format("--node-id {}: {} hex digits expected",
                                                  flags.node_id, 2 * NodeId::kSize));
  return flags.port == -1 ? Status() : daemon::check_port(flags.port);
}

Result<std::optional<Flags>> parse(int argc, char** argv) {
  Flags flags;
  const std::vector<daemon::Flag> own = {
      {"socket", &flags.socket, "PATH", "Unix socket to listen on"},
      {"unix-listen-fd", &flags.unix_listen_fd, "N",
       "inherited listening Unix socket (its path: --socket)"},
      {"port", &flags.port, "PORT",
       "TCP port of its own (0: any); without it other nodes come through the node-manager"},
      {"host", &flags.host, "IP", "address to listen on with --port"},
      {"node-ip", &flags.node_ip, "IP", "address of this node"},
      {"node-name", &flags.node_name, "NAME", "name of this node, for logs"},
      {"node-id", &flags.node_id, "HEX", "id of this node, hex"},
      {"memory", &flags.memory, "BYTES",
       "capacity in bytes (default: setting object_store_memory)"},
      {"directory", &flags.directory, "DIR", "where the memory's file lives (default: /dev/shm)"}};
  const std::string about = "ray-object-store: the shared-memory objects of one node";
  RT_ASSIGN(bool start, daemon::parse_flags(argc, argv, about, own, flags));
  if (!start) return std::optional<Flags>();
  RT_TRY(check(flags));
  return std::optional<Flags>(std::move(flags));
}

Result<std::unique_ptr<Arena>> make_arena(const Flags& flags, const Settings& settings) {
  Arena::Options options;
  options.directory = flags.directory;
  options.capacity = flags.memory.value_or(settings.object_store_memory);
  if (options.capacity == 0)
    options.capacity =
        launch::detect_object_store_memory(flags.directory, settings.min_object_store_memory);
  options.min_capacity = settings.min_object_store_memory;
  return Arena::create(options);
}

Result<StoreService::Options> service_options(const Flags& flags) {
  StoreService::Options options;
  options.identity.role = "object_store";
  // The token is needed even without a TCP port, because the node-manager passes on connections
  // from other nodes.
  RT_ASSIGN(options.identity.token, daemon::read_token(flags));
  Rng rng = Rng::from_system();
  options.node = flags.node_id.empty() ? NodeId::random(rng) : NodeId::from_hex(flags.node_id);
  options.identity.id = options.node.binary();
  return options;
}

Status run(const Flags& flags) {
  RT_ASSIGN(Settings settings, load_settings(flags.config, flags.settings));
  RT_TRY(daemon::start_log(flags, settings, "object-store"));
  daemon::Notifier notifier;
  RT_ASSIGN(std::unique_ptr<Arena> arena, make_arena(flags, settings));
  int64_t capacity = arena->capacity();
  std::string place = arena->place();

  net::AsioLoop loop;
  RT_ASSIGN(StoreService::Options options, service_options(flags));
  options.on_stop = [&] {
    notifier.stopping("the node ends");
    loop.stop();
  };
  StoreService service(loop, settings, std::move(arena), std::move(options));
  if (flags.unix_listen_fd >= 0) {
    RT_TRY(service.listen_fd(flags.unix_listen_fd));
  } else {
    RT_TRY(service.listen(net::Address::unix_socket(flags.socket)));
  }
  if (flags.port >= 0) RT_TRY(service.listen(net::Address::tcp(flags.host, flags.port)));
  daemon::EndWatch ends(loop, flags, [&](const std::string& why) {
    RT_INFO("{}: stopping", why);
    notifier.stopping(why);
    loop.stop();
  });
  RT_INFO("object store of node {} ready: {} bytes in {}, socket {}, pid {}",
          flags.node_name.empty() ? flags.node_ip : flags.node_name, capacity, place, flags.socket,
          ::getpid());
  notifier.ready(fmt::format("{} bytes in {}", capacity, place));
  daemon::KeepAlive alive(loop, notifier);
  loop.run();
  RT_INFO("stopped");
  // The socket was bound by the parent process, and nobody else removes it.
  if (flags.unix_listen_fd >= 0 && !flags.socket.empty()) ::unlink(flags.socket.c_str());
  return {};
}

}  // namespace
}  // namespace rt::store

int main(int argc, char** argv) {
  return rt::daemon::run_main("ray-object-store", argc, argv, rt::store::parse, rt::store::run);
}
