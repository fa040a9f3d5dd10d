// `rayctl start`: starts a head with a node, or a node that joins a cluster.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/client/head_client.h"
#include "cli/commands.h"
#include "cli/commands/start_options.h"
#include "cli/commands/supervise.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "common/base/environment.h"
#include "common/base/json_members.h"
#include "common/base/json_text.h"
#include "common/base/utf8.h"
#include "common/tls/tls.h"

namespace rt::cli {
namespace {

constexpr int64_t kHeadTimeoutUs = 5'000'000;

// Puts the --tls options into this process's environment, which the daemons inherit. Returns an
// error if a certificate or key cannot be used, before anything has been started.
Status apply_tls(const CommandLine& line) {
  std::vector<std::string> given, missing;
  for (auto [option, variable] : {std::pair{"tls-cert", tls::kCertificate},
                                  {"tls-key", tls::kKey},
                                  {"tls-ca", tls::kAuthorities}}) {
    const std::string file = line.has(option) ? line.get(option) : environment(variable);
    if (file.empty()) missing.push_back(fmt::format("--{}", option));
    if (!line.has(option)) continue;
    given.push_back(fmt::format("--{}", option));
    if (file.empty()) continue;
    setenv(variable, std::filesystem::absolute(file).c_str(), 1);
    setenv(tls::kUse, "1", 1);
  }
  if (!given.empty() && !missing.empty())
    return make_error(Code::kInvalid, fmt::format("{} needs {} (docs/tls.md)", given[0],
                                                  fmt::join(missing, " and ")));
  const auto& tls = tls::Tls::of_process();
  return tls ? Status() : Status(tls.error());
}

// Connects to the head before anything is started, so that an unreachable head, a wrong token or a
// wrong version is one clear error. Replaces options.address by the resolved address.
Status check_head(launch::NodeOptions& options) {
  RT_ASSIGN(Head head, connect_head(options.address));
  options.address = head.address;
  return {};
}

// HOST:PORT of the head's HTTP interface; empty if there is none.
std::string dashboard_address(const launch::StartedNode& node) {
  auto head = connect_head(node.head_address);
  if (!head) return "";
  proto::KvGetRequest request;
  request.set_ns("dashboard");
  request.set_key("dashboard");
  auto reply = head->client->call(&proto::HeadService::Stub::KvGet, request, kHeadTimeoutUs);
  return reply && reply->found() ? reply->value() : "";
}

// The reason why the HTTP interface did not start, from the head's log; if the log has none, a text
// that names the log.
std::string why_no_dashboard(const launch::StartedNode& node) {
  constexpr std::string_view kSaid = "the dashboard and its HTTP interface are not started: ";
  // The head has just started, so that the line is near the end of a log that goes on.
  constexpr size_t kLogEndBytes = 1 << 20;
  const std::string path = node.session_dir + "/logs/head.log";
  const std::string log = launch::read_end_of_file(path, kLogEndBytes).value_or("");
  const size_t said = log.rfind(kSaid);
  if (said == std::string::npos) return path + " says why";
  const size_t begin = log.rfind('\n', said) + 1;
  std::string line = log.substr(begin, log.find('\n', said) - begin);
  // With RAY_BACKEND_LOG_JSON the line is a JSON object.
  if (line.starts_with('{')) {
    std::string message = text_of(parse_ordered_json(line), "message");
    if (message.starts_with(kSaid)) line = std::move(message);
  }
  return line.substr(line.find(kSaid) + kSaid.size());
}

void print_next_steps(const launch::StartedNode& node, const launch::NodeOptions& options,
                      bool continues) {
  print("Local node IP: {}\n\n{}\n", node.node_ip, boxed("Ray runtime started."));
  if (continues)
    print(
        "The cluster whose state is in {} goes on: its other nodes, named actors, jobs and "
        "functions.\n\n",
        options.state_dir);
  print("Next steps\n");
  auto token = launch::auth_token(false);
  bool secured = token && !token->empty();
  if (options.head) {
    print("  To add another node to this cluster, run\n    {} start --address='{}'\n",
          program_name(), node.head_address);
    if (secured)
      print(
          "  there, with this machine's token: copy ~/.ray/auth_token, or set RAY_AUTH_TOKEN to "
          "what `{} get-auth-token` prints here.\n",
          program_name());
    print(
        "\n  To connect to this cluster from Python, run\n    import ray\n    ray.init()  # on "
        "this machine; elsewhere ray.init(address='{}')\n",
        node.head_address);
    print(
        "\n  To submit a program as a job, run\n    RAY_ADDRESS='{}' {} job submit -- python "
        "my_program.py\n\n",
        node.head_address, program_name());
  }
  if (options.head) {
    std::string dashboard = dashboard_address(node);
    if (dashboard.empty() && options.dashboard.include) {
      print(stderr,
            "Warning: the dashboard and its HTTP interface are not started: {} (--dashboard-port "
            "and --dashboard-host choose another place).\n",
            printable(why_no_dashboard(node)));
    }
    if (!dashboard.empty())
      print("  To watch the cluster, or to talk to it over HTTP, use\n    {}://{}\n\n",
            tls::requested_by_environment() ? "https" : "http", dashboard);
  }
  print(
      "  To end what was started here, run\n    {} stop\n\n  To see the cluster's state, run\n    "
      "{} status\n",
      program_name(), program_name());
  print("\nLogs: {}/logs\n", node.session_dir);
  if (!options.state_dir.empty()) print("State: {}\n", options.state_dir);
  std::fflush(stdout);
}

// Handles `start --head` after only the head was lost. The nodes that still run wait for this head,
// so it is started again with its state instead of a new cluster.
Result<int> restart(const launch::StartedNode& without_head, bool block) {
  RT_ASSIGN(auto node, launch::restart_head(without_head));
  print(stderr,
        "Notice: the node of {} had lost its head: the head is started again with the cluster's "
        "state; options of the node itself keep their values{}.\n",
        node.session_name, block ? ", and --block has no effect" : "");
  print("Local node IP: {}\n\n{}\n", node.node_ip, boxed("Ray runtime continues."));
  return kExitOk;
}

Result<int> start(launch::NodeOptions& options, bool block) {
  if (options.head) {
    if (auto node = launch::node_without_head(launch::temp_root(options.temp_dir), options.port))
      return restart(*node, block);
  }
  bool continues =
      !options.state_dir.empty() && access((options.state_dir + "/head.sqlite").c_str(), F_OK) == 0;
  RT_ASSIGN(auto node, launch::start_node(options));
  for (const auto& warning : node.warnings) print(stderr, "Warning: {}.\n", warning);
  print_next_steps(node, options, continues);
  return block ? supervise(node) : kExitOk;
}

}  // namespace

int run_start(const Words& words) {
  CommandLine line("start",
                   "Starts a head with a node (--head), or a node that joins a cluster "
                   "(--address), in the background.");
  declare_start_options(line);
  if (auto code = line.parse(words)) return *code;
  if (Status tls = apply_tls(line); !tls) return usage_error("start", tls.error().message);
  auto options = start_options(line);
  if (!options)
    return options.error().code == Code::kInvalid ? usage_error("start", options.error().message)
                                                  : failure(options.error());
  if (!options->head) {
    if (Status reachable = check_head(*options); !reachable) return failure(reachable.error());
  }
  if (line.has("block")) hold_signals();
  auto code = start(*options, line.has("block"));
  if (!code && code.error().code == Code::kInvalid)
    return usage_error("start", code.error().message);
  return finish(code);
}

}  // namespace rt::cli
