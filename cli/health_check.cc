// `rayctl health-check`: checks head, nodes or HTTP interface and answers by the exit code.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/head_client.h"
#include "common/base/ids.h"
#include "common/proto/node_manager.pb.h"
#include "common/state/over_http.h"

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

// Asks every node-manager itself, not only the head's view of the nodes.
Status check_nodes(Head& head) {
  RT_ASSIGN(auto reply, living_nodes(head));
  std::string silent;
  for (const auto& node : reply.nodes()) {
    auto client = connect_node(node);
    Result<proto::ProcessesReply> answer = make_error(Code::kUnavailable, "");
    if (client)
      answer = (*client)->call(&proto::NodeManagerService::Stub::ListProcesses, proto::Empty(),
                               kAnswerUs);
    if (!client || !answer)
      silent += fmt::format("{}node {} ({})", silent.empty() ? "" : ", ",
                            to_hex(node.node_id()).substr(0, 16),
                            client ? answer.error().message : client.error().message);
  }
  if (silent.empty()) return {};
  return make_error(Code::kUnavailable, "no answer from " + silent);
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
  auto nodes = living_nodes(head);
  if (!nodes) return nodes.error();
  return check_storage(head);
}

}  // namespace

int run_health_check(const Words& words) {
  CommandLine line("health-check",
                   "Exits 0 without output when the cluster is healthy, else 1 with the reason.");
  line.address_option()
      .choice("component", "head|nodes|dashboard",
              "the head, which knows a living node and can write its files (default); every node's "
              "own answer; the HTTP interface")
      .hidden_flag("skip-version-check");
  if (auto code = line.parse(words)) return *code;
  return finish(check(line));
}

}  // namespace rt::cli
