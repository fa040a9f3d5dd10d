// rayctl (also installed as `ray`): finds the command and runs it.
#include <fmt/core.h>

#include <csignal>
#include <filesystem>

#include "cli/commands.h"
#include "cli/output.h"

namespace rt::cli {
namespace {

struct Command {
  const char* name;
  int (*run)(const Words&);
  const char* summary;      // nullptr: not listed
};

constexpr Command kCommands[] = {
    {"start", run_start, "start a head on this machine, or a node that joins a cluster"},
    {"stop", run_stop, "end what was started on this machine"},
    {"status", run_status, "nodes, resource usage, and what waits for resources"},
    {"nodes", run_nodes, "the cluster's nodes, as ray.nodes()"},
    {"cluster-resources", run_cluster_resources, "what the cluster has, as ray.cluster_resources()"},
    {"available-resources", run_available_resources, "what is free, as ray.available_resources()"},
    {"list", run_list, "actors, tasks, objects, workers, jobs, ...: one line each"},
    {"get", run_get, "everything known of one of them"},
    {"summary", run_summary, "tasks, actors or objects, counted"},
    {"logs", run_logs, "log files of every node: of a task, an actor, a worker, a job"},
    {"memory", run_memory, "what refers to objects, and what they take"},
    {"timeline", run_timeline, "write a Chrome trace of all tasks"},
    {"metrics", run_metrics, "what programs count, as Prometheus text"},
    {"stack", run_stack, "what every thread of every worker does now"},
    {"profile", run_profile, "where the time of a process, actor, task, job or daemon goes"},
    {"job", run_job, "submit programs and follow them: submit, status, logs, list, stop"},
    {"kill-actor", run_kill_actor, "end a named actor"},
    {"health-check", run_health_check, "exit 0 when the head answers"},
    {"get-auth-token", run_get_auth_token, "print the cluster token"},
    {"version", run_version, "print the version"},
    {"settings-doc", run_settings_doc, nullptr},
};

void print_help() {
  fmt::print("Usage: {} COMMAND [options]\n\nCommands:\n", program_name());
  for (const auto& command : kCommands) {
    if (command.summary) fmt::print("  {:<20} {}\n", command.name, command.summary);
  }
  fmt::print("\n'{} COMMAND --help' shows a command's options.\n", program_name());
}

int dispatch(const Words& words) {
  if (words.size() > 1 && words[0] == "help") return dispatch({words[1], "--help"});
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help();
    return words.empty() ? kExitUsage : kExitOk;
  }
  if (words[0] == "--version") return run_version({});
  for (const auto& command : kCommands) {
    if (words[0] == command.name) return command.run(Words(words.begin() + 1, words.end()));
  }
  return usage_error("", (words[0].starts_with("-") ? "no such option: " : "no such command: ") + words[0]);
}

}  // namespace
}  // namespace rt::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);     // a lost head is an error to report, not a reason to vanish
  rt::cli::set_program_name(std::filesystem::path(argv[0]).filename());
  int code = rt::cli::dispatch(rt::cli::Words(argv + 1, argv + argc));
  return code == rt::cli::kExitOk ? rt::cli::finish(rt::cli::flush_output()) : code;
}
