// Restarts a head that has ended, beside its node, with the same command line, address and state.
// Meanwhile the cluster's node-managers, drivers and workers keep trying to reach it.
#include <fmt/format.h>

#include <algorithm>

#include "common/net/address.h"
#include "launch/node/internal.h"
#include "launch/node/launch.h"
#include "launch/node/session.h"
#include "launch/node/spawn.h"
#include "launch/node/starter_line.h"

namespace rt::launch {
namespace {

const StartedProcess* find(const StartedNode& node, std::string_view name) {
  for (const auto& process : node.processes) {
    if (process.name == name) return &process;
  }
  return nullptr;
}

bool lives(const StartedProcess* process) {
  return process && process->start_time != 0 &&
         process_start_time(process->pid) == process->start_time;
}

Result<SpawnRequest> request_for(const StartedProcess& head, const StartedNode& node,
                                 const ReadySocket& ready) {
  SpawnRequest request;
  request.name = head.name;
  request.executable = head.command.front();
  request.arguments.assign(head.command.begin() + 1, head.command.end());
  request.output_file = fmt::format("{}/logs/{}.err", node.session_dir, head.name);
  RT_ASSIGN(std::string token, auth_token(false));
  request.environment["RAY_AUTH_TOKEN"] = token.empty() ? std::nullopt : std::optional(token);
  request.environment["RAY_AUTH_MODE"] =
      token.empty() ? std::optional<std::string>("disabled") : std::nullopt;
  request.environment["NOTIFY_SOCKET"] = ready.name();
  return request;
}

}  // namespace

std::optional<StartedNode> node_without_head(const std::string& temp_root, int port) {
  for (const auto& node : recorded_nodes(temp_root)) {
    const StartedProcess* head = find(node, "ray-head");
    auto address = net::Address::parse(node.head_address);
    bool waits =
        head && !lives(head) && !head->command.empty() && lives(find(node, "ray-node-manager"));
    if (waits && address && address->port == port) return node;
  }
  return std::nullopt;
}

std::optional<std::string> living_head(const std::string& temp_root, int port) {
  for (const auto& node : recorded_nodes(temp_root)) {
    auto address = net::Address::parse(node.head_address);
    if (lives(find(node, "ray-head")) && address && address->port == port) return node.head_address;
  }
  return std::nullopt;
}

Result<StartedNode> restart_head(const StartedNode& node) {
  const StartedProcess* ended = find(node, "ray-head");
  if (!ended || ended->command.empty())
    return make_error(Code::kInvalid,
                      fmt::format("the record in {} does not say how its head was started: start a "
                                  "new cluster with `rayctl start --head`",
                                  node.session_dir));
  RT_ASSIGN(auto address, net::Address::parse(node.head_address));
  // The recorded command line names the listener as --listen-fd kFirstInheritedFd, and the line to
  // the starter as the next descriptor.
  RT_ASSIGN(int fd, net::listen_on(net::Address::tcp(listening_host(node.node_ip), address.port)));
  Fd listener(fd);
  RT_ASSIGN(StarterLine starter_line, StarterLine::create(node.session_dir));
  RT_ASSIGN(ReadySocket ready, ReadySocket::create());
  RT_ASSIGN(SpawnRequest request, request_for(*ended, node, ready));
  request.inherit = {listener.get(), starter_line.reading_end()};
  RT_ASSIGN(StartedProcess head, spawn(request));
  listener.reset();
  std::string culprit;
  if (Status said = ready.wait({head}, kReadyTimeoutUs, &culprit); !said) {
    stop_processes({head}, kCleanupGraceUs);
    // Unless it is reaped, this child stays as a zombie.
    reap_and_describe(head.pid);
    Error error = said.error();
    std::string words = last_words(node, head.name);
    error.message += words.empty() ? " and left no message" : ". " + words;
    return error;
  }
  StartedNode again = node;
  std::replace_if(
      again.processes.begin(), again.processes.end(),
      [](const StartedProcess& p) { return p.name == "ray-head"; }, head);
  RT_TRY(record_node(session_of(again), again));
  RT_TRY(starter_line.release());
  return again;
}

}  // namespace rt::launch
