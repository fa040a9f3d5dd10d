// `rayctl stack`: prints the current stacks of all threads of workers and drivers.
#include <fmt/core.h>
#include <unistd.h>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/commands/profile_common.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

Status show_stacks(const CommandLine& line, int64_t timeout_us) {
  state::ProfileQuery query;
  query.timeout_us = timeout_us;
  query.native = !line.has("no-native");
  query.target = line.get("TARGET", "all");
  query.node = line.get("node");
  RT_ASSIGN(state::ProfileAnswer answer, ask_profile(line, query));
  if (line.for_programs()) {
    print_data(line, stacks_json(answer.all));
  } else {
    print("{}", profile::stacks_text(answer.all));
    if (answer.all.empty() && answer.missing.empty())
      print(stderr, "No worker and no driver runs in this cluster.\n");
  }
  return {};
}

}  // namespace

int run_stack(const Words& words) {
  CommandLine line("stack",
                   "Prints what every thread of every worker and driver does now, on all nodes: "
                   "Python and native frames. Needs no privileges.");
  line.address_option()
      .format_option()
      .timeout_option()
      .flag("native", "also native frames (the default)")
      .flag("no-native", "Python frames only");
  line.option("node", "ID|IP", "processes of this node only").positional("TARGET", false);
  if (auto code = line.parse(words)) return *code;
  if (line.has("native") && line.has("no-native"))
    return usage_error("stack", "--native and --no-native exclude each other");
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("stack", timeout.error().message);
  return finish(show_stacks(line, *timeout));
}

}  // namespace rt::cli
