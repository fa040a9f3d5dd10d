// `rayctl drain-node`: asks a node to finish its work and leave the cluster.
#include <fmt/core.h>

#include <algorithm>

#include "cli/client/head_client.h"
#include "cli/commands.h"
#include "cli/terminal/print.h"
#include "common/base/ids.h"
#include "common/proto/node_manager.pb.h"
#include "launch/node/launch.h"

namespace rt::cli {
namespace {

constexpr char kIdle[] = "DRAIN_NODE_REASON_IDLE_TERMINATION",
               kPreemption[] = "DRAIN_NODE_REASON_PREEMPTION";
constexpr int64_t kDrainAnswerUs = 10'000'000, kMostSeconds = 10 * 365 * 24 * 3600;

Result<proto::DrainRequest> drain_request(const CommandLine& line) {
  if (line.has("node-id") && !NodeId::is_valid(from_hex(line.get("node-id")))) {
    return make_error(
        Code::kInvalid,
        fmt::format(
            "--node-id is '{}': it takes the {} hexadecimal digits that `{} list nodes` shows",
            excerpt(line.get("node-id")), 2 * NodeId::kSize, program_name()));
  }
  RT_ASSIGN(auto seconds, line.whole("deadline-remaining-seconds", 0, kMostSeconds));
  proto::DrainRequest request;
  request.set_reason(line.get("reason") == kIdle ? proto::DRAINED_IDLE
                                                 : proto::DRAINED_FOR_PREEMPTION);
  request.set_message(line.get("reason-message"));
  // 0 would mean no deadline; the nearest possible deadline is 1 ms away.
  if (seconds) request.set_deadline_ms(std::max<int64_t>(1, *seconds * 1000));
  return request;
}

// The node that --node-id names, or the only live node of the cluster that was started on this
// machine.
Result<proto::Node> choose(const CommandLine& line, Head& head) {
  proto::GetNodesRequest request;
  RT_ASSIGN(auto reply,
            head.client->call(&proto::HeadService::Stub::GetNodes, request, kDrainAnswerUs));
  std::vector<std::string> wanted;
  if (line.has("node-id")) {
    wanted = {line.get("node-id")};
  } else {
    for (const auto& node : launch::recorded_nodes(launch::temp_root()))
      wanted.push_back(node.node_id_hex);
  }
  std::vector<proto::Node> found;
  for (const auto& node : reply.nodes()) {
    if (std::find(wanted.begin(), wanted.end(), to_hex(node.node_id())) == wanted.end()) continue;
    if (line.has("node-id") && !node.alive())
      return make_error(Code::kNotFound,
                        fmt::format("node {} is dead: {}", wanted[0], node.death_message()));
    if (node.alive()) found.push_back(node);
  }
  if (found.size() == 1) return found[0];
  std::string why =
      line.has("node-id") ? fmt::format("the cluster at {} has no node {}", head.address, wanted[0])
      : found.empty()
          ? fmt::format("no node of the cluster at {} was started on this machine", head.address)
          : fmt::format("{} nodes of the cluster at {} were started on this machine", found.size(),
                        head.address);
  return make_error(
      Code::kNotFound,
      fmt::format("{}: choose with --node-id, `{} list nodes` shows the ids", why, program_name()));
}

Status drain(const CommandLine& line, const proto::DrainRequest& request) {
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  RT_ASSIGN(proto::Node node, choose(line, head));
  RT_ASSIGN(auto client, connect_node(node));
  RT_ASSIGN(auto reply,
            client->call(&proto::NodeManagerService::Stub::Drain, request, kDrainAnswerUs));
  const std::string id = to_hex(node.node_id());
  if (!reply.accepted())
    return make_error(Code::kUnavailable,
                      fmt::format("node {} ({}) goes on: {}", id, node.ip(), reply.why_not()));
  std::string until = request.deadline_ms() > 0 ? fmt::format(", or in {} s whatever runs",
                                                              (request.deadline_ms() + 999) / 1000)
                                                : "";
  print("Node {} ({}) takes nothing new and leaves the cluster once it is idle{}.\n", id, node.ip(),
        until);
  return {};
}

}  // namespace

int run_drain_node(const Words& words) {
  CommandLine line("drain-node",
                   "Lets a node finish what it does and leave the cluster: nothing new comes to "
                   "it. For idle termination only a node that does nothing is accepted.");
  line.address_option()
      .option("node-id", "ID", "the node (default: the one of this machine)")
      .choice("reason", fmt::format("{}|{}", kIdle, kPreemption), "why it goes")
      .required()
      .option("reason-message", "TEXT", "an explanation for people, kept with the node")
      .required()
      .option("deadline-remaining-seconds", "N",
              "after this time, kill what still runs (default: the node waits)");
  if (auto code = line.parse(words)) return *code;
  auto request = drain_request(line);
  if (!request) return usage_error("drain-node", request.error().message);
  return finish(drain(line, *request));
}

}  // namespace rt::cli
