// `rayctl get`: all details of one actor, node, task, ... by its id.
#include <fmt/core.h>

#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/commands/state_text.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

constexpr char kShownResources[] = "actors, placement-groups, nodes, workers, tasks or objects";

Status show_one(const CommandLine& line, const state::Resource& resource, state::Query query) {
  const std::string id = line.get("ID");
  query.detail = true;
  query.limit = state::kMaxLimit;
  query.filters = {{resource.id, true, id}};
  RT_ASSIGN(auto cluster, state_cluster(line));
  RT_ASSIGN(auto answer, state_list(cluster, query));
  const auto& rows = answer.json["result"];
  if (rows.empty() && line.get("format") == "json") {
    print("null\n");
  } else if (rows.empty()) {
    print("Resource with id={} not found in the cluster.\n", excerpt(id));
  } else {
    // One row is printed as an object, several as a list: a task has a row per attempt. An object
    // always is a list, because several processes may refer to it.
    bool one = rows.size() == 1 && resource.name != "objects";
    api_json::Json shown = api_json::Json::array();
    for (const auto& row : rows) shown.push_back(humanized(row));
    print_data(line, one ? shown[0] : shown);
  }
  RT_TRY(flush_output());
  warn_of_missing(answer.json);
  return {};
}

}  // namespace

int run_get(const Words& words) {
  CommandLine line("get",
                   fmt::format("Shows everything known of one of {}, as YAML.", kShownResources));
  line.address_option()
      .format_option("yaml|json")
      .timeout_option()
      .positional("RESOURCE", true, "actors|placement-groups|nodes|workers|tasks|objects")
      .positional("ID", false);
  if (auto code = line.parse(words)) return *code;
  const std::string word = line.get("RESOURCE");
  const state::Resource* resource = state_resource(word);
  if (!resource || resource->name == "jobs" || resource->name == "runtime_envs") {
    return usage_error(
        "get", fmt::format("RESOURCE is '{}': it takes {}", excerpt(word), kShownResources));
  }
  if (!line.has("ID"))
    return usage_error("get", fmt::format("ID is missing: `{} list {}` shows the ids there are",
                                          program_name(), word));
  if (resource->name == "cluster_events")
    return failure(make_error(Code::kUnsupported,
                              fmt::format("one cluster event cannot be asked for: `{} list "
                                          "cluster-events --detail` shows all there is of them",
                                          program_name())));
  state::Query query{resource->name};
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("get", timeout.error().message);
  query.timeout_us = *timeout;
  return finish(show_one(line, *resource, query));
}

}  // namespace rt::cli
