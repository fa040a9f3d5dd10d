// `rayctl summary`: tasks, actors, objects or placement groups, counted by kind.
#include <fmt/core.h>

#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/commands/state_text.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

Status show_summary(const CommandLine& line, const state::Query& query) {
  RT_ASSIGN(auto cluster, state_cluster(line));
  RT_ASSIGN(auto answer, state_summary(cluster, query));
  if (line.for_programs()) {
    print_data(line, answer.json);
  } else {
    print("{}", summary_text(query.resource, answer.json, now_text()));
  }
  RT_TRY(flush_output());
  warn_of_missing(answer.json);
  return {};
}

}  // namespace

int run_summary(const Words& words) {
  CommandLine line("summary",
                   "Counts tasks by function, actors by class, objects by the place in the program "
                   "that made them, or placement groups by strategy.");
  constexpr char kResources[] = "tasks|actors|objects|placement-groups";
  line.address_option().format_option().timeout_option().positional(kResources, true, kResources);
  if (auto code = line.parse(words)) return *code;
  const std::string word = line.get(kResources);
  if (word != "tasks" && word != "actors" && word != "objects" && word != "placement-groups") {
    return usage_error("summary", fmt::format("'{}' cannot be summarized: there are tasks, actors, "
                                              "objects and placement-groups",
                                              excerpt(word)));
  }
  state::Query query{state_resource(word)->name};
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("summary", timeout.error().message);
  query.timeout_us = *timeout;
  return finish(show_summary(line, query));
}

}  // namespace rt::cli
