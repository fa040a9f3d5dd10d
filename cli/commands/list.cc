// `rayctl list`: the rows of one resource of the state API.
#include <fmt/core.h>

#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/commands/state_text.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

constexpr char kListedResources[] =
    "actors, jobs, placement-groups, nodes, workers, tasks, objects, runtime-envs or "
    "cluster-events";

Result<state::Query> query_of(const CommandLine& line, const state::Resource& resource) {
  state::Query query{resource.name};
  query.detail = line.has("detail");
  RT_ASSIGN(auto limit, line.whole("limit", 0, state::kMaxLimit));
  query.limit = limit.value_or(query.limit);
  RT_ASSIGN(query.timeout_us, timeout_us(line));
  return query;
}

Status show_list(const CommandLine& line, const state::Query& query) {
  RT_ASSIGN(auto cluster, state_cluster(line));
  RT_ASSIGN(auto answer, state_list(cluster, query));
  write_output(list_text(std::move(answer.json["result"]), line.get("format", "default"),
                         query.detail, now_text()));
  RT_TRY(flush_output());
  warn_of_missing(answer.json);
  return {};
}

}  // namespace

int run_list(const Words& words) {
  CommandLine line("list", fmt::format("Lists {}.", kListedResources));
  line.address_option()
      .format_option("default|json|yaml|table")
      .option_list("filter,f", "KEY=VALUE",
                   "only rows of which this holds; also KEY!=VALUE. May be given several times: "
                   "all must hold")
      .option("limit", "N", "how many rows to show (default 100, at most 10000)")
      .flag("detail", "with all columns; as YAML unless a format is given")
      .timeout_option()
      .positional(
          "RESOURCE", true,
          "actors|jobs|placement-groups|nodes|workers|tasks|objects|runtime-envs|cluster-events");
  if (auto code = line.parse(words)) return *code;
  const state::Resource* resource = state_resource(line.get("RESOURCE"));
  if (!resource)
    return usage_error("list", fmt::format("RESOURCE is '{}': it takes {}",
                                           excerpt(line.get("RESOURCE")), kListedResources));
  auto query = query_of(line, *resource);
  if (!query) return usage_error("list", query.error().message);
  for (const std::string& text : line.all("filter")) {
    auto filter = parse_filter(text);
    if (!filter) return failure(filter.error());
    query->filters.push_back(std::move(*filter));
  }
  if (auto bound = state::Filters::bind(*resource, query->filters); !bound)
    return usage_error("list", bound.error().message);
  if (Status known = state::Filters::check_values(*resource, query->filters); !known)
    return usage_error("list", known.error().message);
  return finish(show_list(line, *query));
}

}  // namespace rt::cli
