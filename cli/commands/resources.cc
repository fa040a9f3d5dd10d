// `rayctl cluster-resources` and `rayctl available-resources`: two sums over the same nodes.
#include "cli/client/head_client.h"
#include "cli/commands.h"
#include "cli/terminal/output.h"

namespace rt::cli {
namespace {

Status show_amount(const CommandLine& line, api_json::Amount amount) {
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  proto::GetNodesRequest request;
  request.set_alive_only(true);
  RT_ASSIGN(auto reply, head.client->call(&proto::HeadService::Stub::GetNodes, request));
  print_resources(line, api_json::resources_json(reply.nodes(), amount));
  return {};
}

int show_resources(const Words& words, const char* name, const char* summary,
                   api_json::Amount amount) {
  CommandLine line(name, summary);
  line.address_option().format_option();
  if (auto code = line.parse(words)) return *code;
  return finish(show_amount(line, amount));
}

}  // namespace

int run_cluster_resources(const Words& words) {
  return show_resources(
      words, "cluster-resources",
      "Shows what the live nodes have together; --format json prints what ray.cluster_resources() "
      "returns.",
      api_json::Amount::kTotal);
}

int run_available_resources(const Words& words) {
  return show_resources(
      words, "available-resources",
      "Shows what is free; --format json prints what ray.available_resources() returns.",
      api_json::Amount::kAvailable);
}

}  // namespace rt::cli
