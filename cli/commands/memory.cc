// `rayctl memory`: which processes refer to which objects, and how full the object stores are.
#include <fmt/core.h>

#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "observability/state/memory_text.h"
#include "observability/state/over_http.h"

namespace rt::cli {
namespace {

Status show_memory(const CommandLine& line, const state::MemoryQuery& query) {
  RT_ASSIGN(auto cluster, state_cluster(line));
  if (state::is_http(cluster.head_address))
    return make_error(
        Code::kUnsupported,
        fmt::format("'{}': what object stores hold is not available over HTTP: use the "
                    "cluster's address HOST:PORT",
                    cluster.head_address));
  api_json::Json answer = api_json::Json::object();
  if (line.for_programs()) {
    RT_ASSIGN(auto data, state::memory_data(cluster, query, &answer));
    print_data(line, data.json);
  } else {
    RT_ASSIGN(std::string text, state::memory_text(cluster, query, &answer));
    if (!query.stats_only) print("======== Object references status: {} ========\n", now_text());
    print("{}", text);
  }
  RT_TRY(flush_output());
  warn_of_missing(answer);
  return {};
}

}  // namespace

int run_memory(const Words& words) {
  CommandLine line(
      "memory",
      "Shows which processes refer to which objects, and how full the object stores are.");
  line.address_option()
      .choice("group-by", "NODE_ADDRESS|STACK_TRACE",
              "what a group has in common (default NODE_ADDRESS)")
      .choice("sort-by", "PID|OBJECT_SIZE|REFERENCE_TYPE",
              "what the rows of a group are sorted by (default OBJECT_SIZE)")
      .choice("units", "B|KB|MB|GB", "of sizes: powers of 1000 (default B)")
      .flag("no-format", "no effect: columns are always separated by '|'")
      .flag("stats-only", "only how full the object stores are")
      .option("num-entries,n", "N", "rows of each group to show (also --n; default: all)")
      .format_option()
      .timeout_option();
  Words own = words;
  for (std::string& word : own) {
    if (word == "--n") word = "--num-entries";
  }
  if (auto code = line.parse(own)) return *code;
  state::MemoryQuery query;
  query.group_by = line.get("group-by", query.group_by);
  query.sort_by = line.get("sort-by", query.sort_by);
  query.units = line.get("units", query.units);
  query.stats_only = line.has("stats-only");
  auto entries = line.whole("num-entries", 0, 1'000'000);
  if (!entries) return usage_error("memory", entries.error().message);
  query.entries = entries->value_or(-1);
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("memory", timeout.error().message);
  query.timeout_us = *timeout;
  return state_finish("memory", show_memory(line, query));
}

}  // namespace rt::cli
