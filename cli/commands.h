// Every command of rayctl: words behind its name in, exit code out. One file each.
#pragma once

#include <vector>

#include "cli/command_line.h"

namespace rt::cli {

int run_start(const Words& words);
int run_stop(const Words& words);
int run_status(const Words& words);
int run_top(const Words& words);
int run_nodes(const Words& words);
int run_available_resources(const Words& words);
int run_cluster_resources(const Words& words);
int run_timeline(const Words& words);
int run_metrics(const Words& words);
int run_launch_prometheus(const Words& words);
int run_shutdown_prometheus(const Words& words);
int run_stack(const Words& words);
int run_profile(const Words& words);
int run_job(const Words& words);  // dispatches to the six below
int run_job_submit(const Words& words);
int run_job_status(const Words& words);
int run_job_logs(const Words& words);
int run_job_list(const Words& words);
int run_job_stop(const Words& words);
int run_job_delete(const Words& words);
int run_list(const Words& words);
int run_get(const Words& words);
int run_summary(const Words& words);
int run_logs(const Words& words);
int run_memory(const Words& words);
int run_get_auth_token(const Words& words);
int run_health_check(const Words& words);
int run_kill_actor(const Words& words);
int run_drain_node(const Words& words);
int run_debug(const Words& words);
int run_microbenchmark(const Words& words);
int run_version(const Words& words);
int run_help(const Words& words);
int run_completion(const Words& words);
int run_complete(const Words& words);      // hidden: what the shells' scripts ask
int run_man_pages(const Words& words);     // hidden: the build
int run_command_doc(const Words& words);   // hidden: `make docs`
int run_settings_doc(const Words& words);  // hidden: `make docs`

struct Command {
  const char* name;          // "job submit"
  int (*run)(const Words&);  // of "job submit": of "job", which takes "submit" as its first word
  const char* brief;
  bool is_group = false;  // has no options of its own
};
// Those to be listed, in that order; the commands of a group follow it.
const std::vector<Command>& commands();
// Their tables.
std::vector<CommandInfo> command_infos();
// What names are there, for suggestions: those of `group`, or of the program.
Words command_names(const std::string& group = "");

}  // namespace rt::cli
