// `rayctl stop`: ends the nodes that were started on this machine.
#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/terminal/print.h"
#include "launch/node/launch.h"

namespace rt::cli {
namespace {

// Ends the recorded nodes until no new record appears: a starter that was ended may have spawned
// another daemon after it was found.
launch::StopResult stop_all(const std::string& root, int64_t grace_us) {
  launch::StopResult all;
  // The processes that were asked to end, by pid and start time. A process that outlived SIGKILL is
  // not waited for again.
  std::set<std::pair<int, uint64_t>> seen;
  for (;;) {
    // All nodes in one call: stop_processes() ends all node-managers first and the heads last.
    std::vector<launch::StartedProcess> processes;
    for (const auto& node : launch::recorded_nodes(root)) {
      for (const launch::StartedProcess& process : node.processes) {
        if (seen.emplace(process.pid, process.start_time).second) processes.push_back(process);
      }
    }
    // Daemons whose session was removed while they ran have no record.
    for (launch::StartedProcess& process : launch::started_daemons(root)) {
      if (seen.emplace(process.pid, process.start_time).second)
        processes.push_back(std::move(process));
    }
    if (processes.empty()) break;
    auto result = launch::stop_processes(processes, grace_us);
    all.found += result.found;
    all.killed += result.killed;
  }
  return all;
}

Status stop_processes(const CommandLine& line) {
  RT_ASSIGN(auto grace, line.whole("grace-period", 0, 3600));
  int64_t grace_us = line.has("force") ? 0 : grace.value_or(16) * 1'000'000;
  std::string root = launch::temp_root(line.get("temp-dir"));
  auto result = stop_all(root, grace_us);
  launch::forget_dead_nodes(root);
  if (result.found == 0) {
    print("Did not find any active Ray processes.\n");
    return {};
  }
  if (result.killed > 0 && !line.has("force")) {
    print(
        "Stopped only {} out of {} Ray processes within the grace period of {} s; the others were "
        "killed.\n",
        result.found - result.killed, result.found, grace_us / 1'000'000);
  } else {
    print("Stopped all {} Ray processes.\n", result.found);
  }
  return {};
}

}  // namespace

int run_stop(const Words& words) {
  CommandLine line("stop",
                   "Ends the nodes that `start` started on this machine below the temporary "
                   "directory, also when the files of their session were removed.");
  line.flag("force,f", "kill at once")
      .option("grace-period,g", "SECONDS",
              "time to end in an orderly way; then what is left is killed (default 16)")
      .option("temp-dir", "DIR", "root of the sessions (default: $RAY_TMPDIR or /tmp/ray)")
      .log_options()
      .hidden_flag("verbose,v");
  if (auto code = line.parse(words)) return *code;
  Status stopped = stop_processes(line);
  if (!stopped && stopped.error().code == Code::kInvalid)
    return usage_error("stop", stopped.error().message);
  return finish(stopped);
}

}  // namespace rt::cli
