#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/head_client.h"
#include "cli/output.h"

namespace rt::cli {
namespace {

std::string resources_text(const proto::Node& node) {
  auto resources = api_json::node_json(node)["Resources"];
  std::string text;
  for (const auto& [name, value] : resources.items()) {
    if (name.starts_with("node:")) continue;
    bool bytes = name == "memory" || name == "object_store_memory";
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, bytes ? binary_bytes(value.get<double>()) : amount(value.get<double>()));
  }
  return text;
}

Status show(const CommandLine& line) {
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  RT_ASSIGN(auto reply, head.client->call(&proto::HeadService::Stub::GetNodes, proto::GetNodesRequest()));
  std::vector<proto::Node> nodes(reply.nodes().begin(), reply.nodes().end());
  if (line.json()) {
    print_json(api_json::nodes_json(nodes));
    return {};
  }
  std::vector<Words> rows = {{"NODE ID", "STATE", "ADDRESS", "NAME", "ROLE", "RESOURCES"}};
  for (const auto& node : nodes) {
    std::string id = api_json::node_json(node)["NodeID"];
    rows.push_back({id.substr(0, 16), node.alive() ? "alive" : "dead", fmt::format("{}:{}", node.ip(), node.port()), node.name(), node.is_head() ? "head" : "node",
                    node.alive() ? resources_text(node) : node.death_message()});
  }
  fmt::print("{}", table(rows));
  return {};
}

}  // namespace

int run_nodes(const Words& words) {
  CommandLine line("nodes", "Lists the cluster's nodes, dead ones included. --format json prints what ray.nodes() returns.");
  line.address_option().format_option();
  if (auto code = line.parse(words)) return *code;
  return finish(show(line));
}

}  // namespace rt::cli
