// ray-head: the cluster's coordinator. Its flags are described in docs/daemon-flags.md.
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "common/base/environment.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/net/sockets.h"
#include "daemons/head/http/api.h"
#include "daemons/head/service/head_server.h"
#include "launch/daemon/notify.h"
#include "launch/daemon/process.h"

namespace rt::head {
namespace {

struct Flags : daemon::Flags {
  std::string host = "0.0.0.0", state_dir, cluster_id;
  ApiOptions dashboard;
  bool include_dashboard = true;
  int port = 6379, listen_fd = -1;
};

Status check(const Flags& flags) {
  if (flags.session_dir.empty() && flags.state_dir.empty())
    return make_error(
        Code::kInvalid,
        "--session-dir DIR or --state-dir DIR is missing: where shall the head keep its state?");
  if (!flags.cluster_id.empty() && !ClusterId::is_valid(from_hex(flags.cluster_id)))
    return make_error(Code::kInvalid, fmt::format("--cluster-id {}: {} hex digits expected",
                                                  flags.cluster_id, 2 * ClusterId::kSize));
  if (flags.dashboard.port != ApiOptions::kAnyOfDefault)
    RT_TRY(daemon::check_port(flags.dashboard.port));
  return daemon::check_port(flags.port);
}

Result<std::optional<Flags>> parse(int argc, char** argv) {
  Flags flags;
  const std::vector<daemon::Flag> own = {
      {"port", &flags.port, "PORT", "TCP port to listen on (0: any free one)"},
      {"host", &flags.host, "IP", "address to listen on"},
      {"listen-fd", &flags.listen_fd, "N", "inherited listening TCP socket instead"},
      {"state-dir", &flags.state_dir, "DIR",
       "keep the durable state here instead of in the session directory"},
      {"dashboard-host", &flags.dashboard.host, "IP",
       "address that the HTTP interface listens on (default 127.0.0.1)"},
      {"dashboard-port", &flags.dashboard.port, "PORT",
       "its port (0: any free one; default: 8265, or the next free one)"},
      {"include-dashboard", &flags.include_dashboard, "BOOL",
       "whether there is an HTTP interface (default true)"},
      {"cluster-id", &flags.cluster_id, "HEX", "id of a new cluster, hex (default: random)"}};
  const std::string about = "ray-head: the coordinator of a cluster";
  RT_ASSIGN(bool start, daemon::parse_flags(argc, argv, about, own, flags));
  if (!start) return std::optional<Flags>();
  RT_TRY(check(flags));
  return std::optional<Flags>(std::move(flags));
}

// Returns the address at which other machines reach what listens on `fd`.
Result<std::string> advertised_address(int fd) {
  RT_TRY(net::bound_port(fd));
  net::Address address = net::local_address_of(fd);
  if (address.host == "0.0.0.0" || address.host == "::") address.host = net::detect_node_ip();
  return address.to_string();
}

Result<HeadServer::Options> server_options(const Flags& flags, const Settings& settings,
                                           const std::string& address) {
  HeadServer::Options out;
  out.core.settings = settings;
  std::filesystem::path named(flags.session_dir.empty() ? flags.state_dir : flags.session_dir);
  out.core.session_name = (named.has_filename() ? named : named.parent_path()).filename().string();
  out.core.head_address = address;
  out.core.cluster_id = from_hex(flags.cluster_id);
  out.core.seed = Rng::from_system().next();
  out.state_dir = flags.state_dir.empty() ? flags.session_dir : flags.state_dir;
  out.session_dir = flags.session_dir;
  out.private_cluster = flags.lifeline_fd >= 0;
  RT_ASSIGN(out.token, daemon::read_token(flags));
  return out;
}

// Starts the HTTP interface. A failure is logged and returns null, because the cluster works
// without it.
std::unique_ptr<Api> start_api(net::Loop& loop, const Flags& flags, HeadServer& server,
                               const std::string& address, const HeadServer::Options& options) {
  ApiContext context;
  context.cluster = {address, options.token};
  context.session_name = options.core.session_name;
  context.session_dir = flags.session_dir;
  context.cluster_id = to_hex(server.core().view().cluster_id());
  context.start_time_ms = wall_now_us() / 1000;
  context.private_cluster = flags.lifeline_fd >= 0;
  auto api = Api::start(loop, flags.dashboard, std::move(context));
  if (!api) {
    RT_WARN("the dashboard and its HTTP interface are not started: {}", api.error().message);
    return nullptr;
  }
  server.drive([&](HeadCore& core, Now) { core.set_dashboard((*api)->address()); });
  RT_INFO("HTTP at {}", (*api)->address());
  return std::move(*api);
}

// Raises the limit of open files: nodes, drivers and readers of logs are connections, and a
// shell's usual limit allows only few. No child process inherits the limit, because the head
// starts none.
void raise_descriptor_limit() {
  constexpr rlim_t kEnough = 1 << 16;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    RT_WARN("the limit of open files cannot be raised: {}", std::strerror(errno));
}

// Applies environment variables that users of Ray know to the settings that they correspond to.
Status apply_known_names(Settings& settings) {
  constexpr char kStartTimeout[] = "RAY_JOB_START_TIMEOUT_SECONDS";
  constexpr int kMostSeconds = 365 * 24 * 3600;
  if (std::string text = environment(kStartTimeout); !text.empty()) {
    double seconds = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() ||
        !(seconds >= 0 && seconds <= kMostSeconds))
      return make_error(Code::kInvalid,
                        fmt::format("{} is '{}', but must be a number of seconds from 0 to {}",
                                    kStartTimeout, text.substr(0, 100), kMostSeconds));
    settings.job_start_timeout_ms = std::llround(seconds * 1000);
  }
  if (environment("RAY_JOB_ALLOW_DRIVER_ON_WORKER_NODES") == "1")
    settings.job_driver_on_any_node = true;
  return {};
}

Status run(const Flags& flags) {
  RT_ASSIGN(Settings settings, load_settings(flags.config, flags.settings));
  RT_TRY(apply_known_names(settings));
  RT_TRY(daemon::start_log(flags, settings, "head"));
  raise_descriptor_limit();
  daemon::Notifier notifier;
  int fd = flags.listen_fd;
  if (fd < 0) {
    RT_ASSIGN(fd, net::listen_on(net::Address::tcp(flags.host, flags.port)));
  }
  RT_ASSIGN(std::string address, advertised_address(fd));
  RT_ASSIGN(auto options, server_options(flags, settings, address));

  net::AsioLoop loop;
  options.on_stop = [&] {
    notifier.stopping("stopped by request");
    loop.stop();
  };
  RT_ASSIGN(auto server, HeadServer::open(loop, options));
  std::unique_ptr<Api> api =
      flags.include_dashboard ? start_api(loop, flags, *server, address, options) : nullptr;
  daemon::EndWatch ends(loop, flags, [&](const std::string& why) {
    RT_INFO("{}: stopping", why);
    notifier.stopping(why);
    loop.stop();
  });
  Status outcome;
  server->start(fd, [&](const Status& started) {
    if (!started) {
      outcome = started;
      return loop.stop();
    }
    RT_INFO("cluster {} at {}, incarnation {}", to_hex(server->core().view().cluster_id()), address,
            server->core().view().incarnation());
    notifier.ready(fmt::format("Head of the cluster at {}{}", address,
                               api ? ", http://" + api->address() : ""));
  });
  daemon::KeepAlive alive(loop, notifier);
  loop.run();
  api.reset();
  server.reset();
  RT_INFO("stopped");
  return outcome;
}

}  // namespace
}  // namespace rt::head

int main(int argc, char** argv) {
  return rt::daemon::run_main("ray-head", argc, argv, rt::head::parse, rt::head::run);
}
