// `rayctl nodes`: one line for each node of the cluster, dead ones included.
#include <fmt/core.h>

#include "cli/client/head_client.h"
#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/style.h"
#include "common/base/ids.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"
#include "common/resources/resource_set.h"

namespace rt::cli {
namespace {

std::string resources_text(const proto::Node& node) {
  std::string text;
  const ResourceSet total = ResourceSet::from_proto(node.total());
  for (const auto& [name, units] : total.all()) {
    if (name.starts_with("node:")) continue;
    bool bytes = name == "memory" || name == "object_store_memory";
    double value = static_cast<double>(units) / ResourceSet::kUnit;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name,
                        bytes ? binary_bytes(value) : amount(value));
  }
  return text;
}

Status show_nodes(const CommandLine& line) {
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  RT_ASSIGN(auto reply,
            head.client->call(&proto::HeadService::Stub::GetNodes, proto::GetNodesRequest()));
  if (line.for_programs()) {
    print_data(line, api_json::nodes_json(reply.nodes()));
    return {};
  }
  std::vector<Words> rows = {{"NODE ID", "STATE", "ADDRESS", "NAME", "ROLE", "RESOURCES"}};
  for (const auto& node : reply.nodes()) {
    rows.push_back({to_hex(node.node_id()),
                    node.has_drain() && node.alive() ? painted("draining", Ink::kWarning)
                    : !node.problem().empty()        ? painted("impaired", Ink::kWarning)
                    : node.alive()                   ? painted("alive", Ink::kGood)
                                                     : painted("dead", Ink::kBad),
                    fmt::format("{}:{}", node.ip(), node.port()), node.name(),
                    node.is_head() ? "head" : "node",
                    node.alive() ? resources_text(node) : node.death_message()});
    if (!node.problem().empty())
      print(stderr, "Warning: node {}: {}\n", to_hex(node.node_id()).substr(0, 16),
            printable(node.problem()));
  }
  write_output(table(rows));
  return {};
}

}  // namespace

int run_nodes(const Words& words) {
  CommandLine line("nodes",
                   "Lists the cluster's nodes, dead ones included. --format json and yaml print "
                   "what ray.nodes() returns.");
  line.address_option().format_option();
  if (auto code = line.parse(words)) return *code;
  return finish(show_nodes(line));
}

}  // namespace rt::cli
