// The table of all listed commands.
#include "cli/commands.h"

namespace rt::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"start", run_start, "start a head on this machine, or a node that joins a cluster"},
      {"stop", run_stop, "end what was started on this machine"},
      {"status", run_status, "nodes, resource usage, and what waits for resources"},
      {"top", run_top, "nodes, tasks and the busiest workers, refreshed in place"},
      {"nodes", run_nodes, "the cluster's nodes, as ray.nodes()"},
      {"cluster-resources", run_cluster_resources,
       "what the cluster has, as ray.cluster_resources()"},
      {"available-resources", run_available_resources,
       "what is free, as ray.available_resources()"},
      {"list", run_list, "actors, tasks, objects, workers, jobs, ...: one line each"},
      {"get", run_get, "everything known about one actor, task, object, ..."},
      {"summary", run_summary, "tasks, actors, objects or placement groups, counted"},
      {"logs", run_logs, "log files of every node: of a task, an actor, a worker, a job"},
      {"logs cluster", run_logs, "files by name, on one node or all"},
      {"logs actor", run_logs, "what an actor's process has written"},
      {"logs worker", run_logs, "what a worker process has written"},
      {"logs job", run_logs, "what a job's entrypoint has written"},
      {"logs task", run_logs, "the lines of one task"},
      {"memory", run_memory, "which processes refer to objects, and how large these are"},
      {"timeline", run_timeline, "write a Chrome trace of all tasks"},
      {"metrics", run_metrics, "what programs count, as Prometheus text"},
      {"metrics launch-prometheus", run_metrics,
       "start a Prometheus for the cluster whose head is here"},
      {"metrics shutdown-prometheus", run_metrics,
       "end the Prometheus that launch-prometheus started"},
      {"stack", run_stack, "what every thread of every worker does now"},
      {"profile", run_profile, "where the time of a process, actor, task, job or daemon goes"},
      {"debug", run_debug, "what waits, and why"},
      {"job", run_job, "submit programs and follow them: submit, status, logs, list, stop, delete",
       true},
      {"job submit", run_job, "run a program on the cluster and follow its output"},
      {"job status", run_job, "how a job is doing"},
      {"job logs", run_job, "a job's output"},
      {"job list", run_job, "submitted jobs and drivers"},
      {"job stop", run_job, "end a job"},
      {"job delete", run_job, "forget a job that has ended"},
      {"train", run_train, "training runs of ray.train: list, show, logs, profile, ...", true},
      {"train list", run_train, "training runs, the newest first"},
      {"train show", run_train, "a run: its attempts, its ranks and their processes"},
      {"train logs", run_train, "what a rank of a run has printed and logged"},
      {"train stragglers", run_train, "where the ranks of a run spend their time, and who is late"},
      {"train profile", run_train, "record the next steps of a run, and where their time goes"},
      {"train tensorboard", run_train, "show the profiles of a run with TensorBoard"},
      {"kill-actor", run_kill_actor, "end a named actor"},
      {"drain-node", run_drain_node, "let a node finish its work and leave"},
      {"health-check", run_health_check, "exit 0 when the cluster is healthy"},
      {"microbenchmark", run_microbenchmark,
       "how many tasks, calls and puts a second this machine does"},
      {"get-auth-token", run_get_auth_token, "print the cluster token"},
      {"completion", run_completion, "a script that completes these words in bash, zsh or fish"},
      {"version", run_version, "the versions of Ray's interface and of this program"},
      {"help", run_help, "what a command does, with examples"},
  };
  return all;
}

std::vector<CommandInfo> command_infos() {
  std::vector<CommandInfo> infos;
  for (const Command& command : commands()) {
    Words words = words_of(command.name);
    CommandInfo info;
    if (!command.is_group)
      info = describe([&] {
               return command.run(Words(words.begin() + 1, words.end()));
             }).value_or(CommandInfo());
    info.name = command.name;
    info.brief = command.brief;
    info.is_group = command.is_group;
    if (info.summary.empty()) info.summary = command.brief;
    infos.push_back(std::move(info));
  }
  return infos;
}

Words command_names(const std::string& group) {
  Words names;
  for (const Command& command : commands()) {
    Words words = words_of(command.name);
    if (group.empty() ? words.size() == 1 : words.size() == 2 && words[0] == group)
      names.push_back(words.back());
  }
  return names;
}

}  // namespace rt::cli
