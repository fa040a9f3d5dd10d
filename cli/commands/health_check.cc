// `rayctl health-check`: checks head, nodes or HTTP interface and answers by the exit code.
#include <fmt/core.h>

#include "cli/client/head_client.h"
#include "cli/commands.h"
#include "cli/terminal/print.h"
#include "common/base/ids.h"
#include "common/base/utf8.h"
#include "common/proto/node_manager.pb.h"
#include "observability/state/over_http.h"

namespace rt::cli {
namespace {

constexpr int64_t kAnswerUs = 2'500'000;

// A head whose durable storage fails is not healthy, even though it answers.
Status check_storage(Head& head) {
  RT_ASSIGN(auto reply,
            head.client->call(&proto::HeadService::Stub::GetHealth, proto::Empty(), kAnswerUs));
  if (reply.storage_failure().empty()) return {};
  return make_error(Code::kIo, fmt::format("the head at {} answers, but its {}", head.address,
                                           reply.storage_failure()));
}

Result<proto::GetNodesReply> living_nodes(Head& head) {
  proto::GetNodesRequest request;
  request.set_alive_only(true);
  RT_ASSIGN(auto reply, head.client->call(&proto::HeadService::Stub::GetNodes, request, kAnswerUs));
  if (reply.nodes().empty())
    return make_error(
        Code::kUnavailable,
        fmt::format("the head at {} answers, but the cluster has no live node", head.address));
  return reply;
}

std::string name_of(const proto::Node& node) {
  return fmt::format("node {} ({}:{})", to_hex(node.node_id()).substr(0, 16), node.ip(),
                     node.port());
}

// The head's own node has to work, because programs that start on its machine use it, and at least
// one node of the cluster. Other nodes that do not are a warning: a supervisor that restarted the
// head for them would harm the rest.
Status check_head(Head& head) {
  RT_ASSIGN(auto reply, living_nodes(head));
  size_t working = 0;
  for (const auto& node : reply.nodes()) {
    if (node.problem().empty()) {
      ++working;
    } else if (node.is_head() || reply.nodes_size() == 1) {
      return make_error(Code::kUnavailable,
                        fmt::format("the head at {} answers, but {} does not work as it should: {}",
                                    head.address, name_of(node), printable(node.problem())));
    } else {
      print(stderr, "Warning: {} does not work as it should: {}\n", name_of(node),
            printable(node.problem()));
    }
  }
  if (working == 0)
    return make_error(
        Code::kUnavailable,
        fmt::format("the head at {} answers, but no node works as it should", head.address));
  return check_storage(head);
}

// Asks every node-manager itself, not only the head's view of the nodes.
Status check_nodes(Head& head) {
  RT_ASSIGN(auto reply, living_nodes(head));
  std::string silent;
  for (const auto& node : reply.nodes()) {
    if (!node.problem().empty()) {
      silent += fmt::format("{}{}: {}", silent.empty() ? "" : "; ", name_of(node),
                            printable(node.problem()));
      continue;
    }
    auto client = connect_node(node);
    Result<proto::ProcessesReply> answer = make_error(Code::kUnavailable, "");
    if (client)
      answer = (*client)->call(&proto::NodeManagerService::Stub::ListProcesses, proto::Empty(),
                               kAnswerUs);
    if (!client || !answer)
      silent += fmt::format("{}no answer from {}: {}", silent.empty() ? "" : "; ", name_of(node),
                            client ? answer.error().message : client.error().message);
  }
  if (silent.empty()) return {};
  return make_error(Code::kUnavailable, silent);
}

Status check_dashboard(Head& head) {
  proto::KvGetRequest request;
  request.set_ns("dashboard");
  request.set_key("dashboard");
  RT_ASSIGN(auto reply, head.client->call(&proto::HeadService::Stub::KvGet, request, kAnswerUs));
  if (!reply.found())
    return make_error(Code::kUnavailable,
                      fmt::format("the head at {} has no HTTP interface: it was started with "
                                  "--include-dashboard=false, or its port was taken",
                                  head.address));
  return state::probe_http("http://" + reply.value());
}

Status check(const CommandLine& line) {
  const std::string component = line.get("component", "head");
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  if (component == "nodes") return check_nodes(head);
  if (component == "dashboard") return check_dashboard(head);
  return check_head(head);
}

}  // namespace

int run_health_check(const Words& words) {
  CommandLine line("health-check",
                   "Exits 0 without output when the cluster is healthy, else 1 with the reason.");
  line.address_option()
      .choice(
          "component", "head|nodes|dashboard",
          "the head, which can write its files and whose own node works (default); every node's "
          "own answer and object store; the HTTP interface")
      .hidden_flag("skip-version-check");
  if (auto code = line.parse(words)) return *code;
  return finish(check(line));
}

}  // namespace rt::cli
