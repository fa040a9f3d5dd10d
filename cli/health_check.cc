#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/head_client.h"

namespace rt::cli {
namespace {

Status check(const CommandLine& line) {
  if (line.has("component")) {
    return make_error(Code::kUnsupported, fmt::format("--component '{}': no component but the head reports its health", line.get("component")));
  }
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  proto::GetNodesRequest request;
  request.set_alive_only(true);
  RT_ASSIGN(auto reply, head.client->call(&proto::HeadService::Stub::GetNodes, request, 10'000'000));
  if (reply.nodes().empty()) return make_error(Code::kUnavailable, fmt::format("the head at {} answers, but the cluster has no live node", head.address));
  return {};
}

}  // namespace

int run_health_check(const Words& words) {
  CommandLine line("health-check", "Exits 0 without output when the cluster is healthy, else 1 with the reason.");
  line.address_option().option("component", "NAME", "a component's heartbeat").hidden_flag("skip-version-check");
  if (auto code = line.parse(words)) return *code;
  return finish(check(line));
}

}  // namespace rt::cli
