// Every command of rayctl. Each function takes the words behind the command's name and returns the
// exit code, and lives in the file that is named after the command.
#pragma once

#include <vector>

#include "cli/terminal/command_line.h"

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
int run_train(const Words& words);  // dispatches to those below
int run_train_list(const Words& words);
int run_train_show(const Words& words);
int run_train_logs(const Words& words);
int run_train_stragglers(const Words& words);
int run_train_profile(const Words& words);
int run_train_tensorboard(const Words& words);
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
// Hidden commands, which help and completion do not list.
int run_complete(const Words& words);      // called by the shells' completion scripts
int run_man_pages(const Words& words);     // called by the build
int run_command_doc(const Words& words);   // called by `make docs`
int run_settings_doc(const Words& words);  // called by `make docs`

struct Command {
  const char* name;  // as typed: "job submit"
  // A subcommand such as "job submit" has the function of "job", which takes "submit" as its first
  // word.
  int (*run)(const Words&);
  const char* brief;
  bool is_group = false;  // has no options of its own
};
// The commands that help lists, in that order; the subcommands of a group follow the group.
const std::vector<Command>& commands();
// The option table of each of commands(), in the same order.
std::vector<CommandInfo> command_infos();
// The names that suggestions choose from: the subcommands of `group`, or, when `group` is empty,
// the top-level commands.
Words command_names(const std::string& group = "");

}  // namespace rt::cli
