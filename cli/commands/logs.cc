// `rayctl logs`: lists, prints and follows log files of all nodes.
#include <fmt/core.h>

#include <cstdlib>

#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/commands/log_print.h"
#include "cli/commands/logs_follow.h"
#include "cli/commands/state_text.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "observability/state/over_http.h"

namespace rt::cli {
namespace {

constexpr int64_t kDefaultLines = 1000, kMostLines = 1'000'000'000, kMostPid = 1LL << 31;

// Ray also accepts -id, -ip and -pid, which the parser would read as several one-letter options.
Words with_long_names(const Words& words) {
  Words out;
  for (const std::string& word : words)
    out.push_back(word == "-id"    ? "--node-id"
                  : word == "-ip"  ? "--node-ip"
                  : word == "-pid" ? "--pid"
                                   : word);
  return out;
}

void declare_common(CommandLine& line) {
  line.address_option()
      .flag("follow,f", "keep printing what is written from now on")
      .option("tail", "N", "the last lines (default 1000; -1: all)")
      .timeout_option("for each answer (default 30)")
      .hidden_option("interval")
      .flag("raw",
            "workers' files unchanged, with the marker lines that name the task of the lines after "
            "them");
}

void declare_place(CommandLine& line) {
  line.option("node-id", "ID", "only the files of this node (also -id; default: the head's)")
      .option("node-ip", "IP", "only the files of the node at this address (also -ip)");
}

Result<state::LogQuery> query_of(const CommandLine& line) {
  state::LogQuery query;
  RT_ASSIGN(auto lines, line.whole("tail", -1, kMostLines));
  query.lines = lines.value_or(kDefaultLines);
  RT_ASSIGN(query.timeout_us, timeout_us(line));
  query.follow = line.has("follow");
  query.for_people = !line.has("raw");
  query.node_id = line.get("node-id");
  query.node_ip = line.get("node-ip");
  if (line.has("err")) query.suffix = "err";
  if (line.has("interval")) {
    double seconds = std::atof(line.get("interval").c_str());
    if (!(seconds > 0) || seconds > 86'400)
      return make_error(Code::kInvalid,
                        fmt::format("--interval is '{}': it takes seconds, more than 0",
                                    excerpt(line.get("interval"))));
    query.interval_us = static_cast<int64_t>(seconds * 1e6);
  }
  return query;
}

// Chooses the head's node if the query names no node.
Status choose_node(const state::Cluster& cluster, state::LogQuery* query) {
  if (!query->node_id.empty() || !query->node_ip.empty()) return {};
  state::Query question{"nodes"};
  question.timeout_us = query->timeout_us;
  question.filters = {{"is_head_node", true, "true"}, {"state", true, "ALIVE"}};
  RT_ASSIGN(auto answer, state_list(cluster, question));
  if (answer.json["result"].empty())
    return make_error(Code::kNotFound,
                      "no node runs beside the head: name the one whose logs are wanted with "
                      "--node-id or --node-ip");
  query->node_id = answer.json["result"][0]["node_id"];
  return {};
}

Status show_cluster(const CommandLine& line, state::LogQuery query) {
  RT_ASSIGN(auto cluster, state_cluster(line));
  const std::string glob = line.get("GLOB", "*");
  const bool anywhere = query.node_id.empty() && query.node_ip.empty();
  auto follow = [&] {
    return follow_logs(cluster, {query.node_id, query.node_ip, glob, query.lines, query.interval_us,
                                 query.timeout_us, !query.for_people});
  };
  if (query.follow && anywhere && !state::is_http(cluster.head_address)) return follow();
  RT_TRY(choose_node(cluster, &query));
  // Only the names in the directory of the logs are listed.
  if (!query.follow && glob.find('/') != std::string::npos &&
      glob.find_first_of("*?[") == std::string::npos) {
    query.filename = glob;
    return print_log(cluster, query);
  }
  RT_ASSIGN(auto found,
            state::is_http(cluster.head_address)
                ? state::list_logs_over_http(cluster, query.node_id, query.node_ip, glob,
                                             query.timeout_us)
                : state::list_logs(cluster, query.node_id, query.node_ip, glob, query.timeout_us));
  const auto& kinds = found.json;
  if (kinds.size() == 1 && kinds.begin()->size() == 1) {
    query.filename = (*kinds.begin())[0];
    return print_log(cluster, query);
  }
  if (query.follow) return follow();
  const bool none = std::all_of(kinds.begin(), kinds.end(),
                                [](const api_json::Json& files) { return files.empty(); });
  if (none && line.has("GLOB"))
    return make_error(
        Code::kNotFound,
        fmt::format("no log file of node {} matches '{}' (`{} logs` lists them)",
                    query.node_id.empty() ? query.node_ip : query.node_id, glob, program_name()));
  print("{}", log_listing(
                  query.node_id.empty() ? "Node IP: " + query.node_ip : "Node ID: " + query.node_id,
                  kinds));
  return {};
}

// Runs a subcommand: parses `words`, lets `fill` complete the query from the options, and prints
// the log that it names.
template <class Fill>
int print_chosen(CommandLine& line, const std::string& command, const Words& words, Fill fill) {
  if (auto code = line.parse(with_long_names(words))) return *code;
  auto query = query_of(line);
  if (!query) return usage_error(command, query.error().message);
  if (Status filled = fill(*query); !filled) return usage_error(command, filled.error().message);
  auto run = [&]() -> Status {
    RT_ASSIGN(auto cluster, state_cluster(line));
    if (query->pid > 0) RT_TRY(choose_node(cluster, &*query));
    return print_log(cluster, *query);
  };
  return finish(run());
}

// The value of an option that may also be given as the positional word `word`; kInvalid for both.
Result<std::string> option_or_word(const CommandLine& line, const std::string& option,
                                   const std::string& word) {
  if (line.has(option) && !line.get(word).empty())
    return make_error(Code::kInvalid,
                      fmt::format("'{}' and --{} both say which one it is: give one of them",
                                  excerpt(line.get(word)), option));
  return line.get(option, line.get(word));
}

Status fill_pid(const CommandLine& line, state::LogQuery* query) {
  RT_TRY(option_or_word(line, "pid", "PID"));
  RT_ASSIGN(auto pid, line.whole(line.has("pid") ? "pid" : "PID", 1, kMostPid));
  query->pid = pid.value_or(0);
  return {};
}

int run_cluster(const Words& words) {
  CommandLine line("logs",
                   "Lists the log files of a node, or prints the one that matches; with --follow "
                   "those of all nodes that match, as they grow.\n"
                   "Also: logs actor|worker|job|task (their --help says more).");
  declare_common(line);
  declare_place(line);
  line.hidden_option("encoding").hidden_option("encoding-errors").positional("GLOB", false);
  if (auto code = line.parse(with_long_names(words))) return *code;
  for (const char* name : {"encoding", "encoding-errors"}) {
    if (line.has(name))
      print(stderr, "Notice: --{} has no effect: logs are printed byte for byte.\n", name);
  }
  auto query = query_of(line);
  if (!query) return usage_error("logs", query.error().message);
  return finish(show_cluster(line, *query));
}

int run_actor(const Words& words) {
  CommandLine line("logs actor", "Prints what an actor's process has written.");
  declare_common(line);
  declare_place(line);
  line.positional("ID", false)
      .option("id,a", "ID", "the actor's id")
      .option("pid", "PID", "the id of the actor's process, instead of the actor's")
      .flag("err", "its stderr, not its stdout");
  return print_chosen(line, "logs actor", words, [&](state::LogQuery& query) -> Status {
    RT_ASSIGN(query.actor_id, option_or_word(line, "id", "ID"));
    RT_TRY(fill_pid(line, &query));
    if (query.actor_id.empty() && query.pid == 0)
      return make_error(Code::kInvalid, "ID or --pid is missing: which actor's?");
    if (!query.actor_id.empty()) RT_TRY(state::check_actor_id(query.actor_id));
    if (!query.actor_id.empty()) query.pid = 0;
    return {};
  });
}

int run_worker(const Words& words) {
  CommandLine line("logs worker", "Prints what a worker process has written.");
  declare_common(line);
  declare_place(line);
  line.positional("PID", false)
      .option("pid", "PID", "the process")
      .flag("err", "its stderr, not its stdout");
  return print_chosen(line, "logs worker", words, [&](state::LogQuery& query) -> Status {
    RT_TRY(fill_pid(line, &query));
    return query.pid == 0 ? Status(make_error(Code::kInvalid, "PID is missing: which worker's?"))
                          : Status();
  });
}

int run_job_log(const Words& words) {
  CommandLine line("logs job", "Prints the output of a submitted job's entrypoint.");
  declare_common(line);
  line.positional("SUBMISSION_ID", false).option("id", "SUBMISSION_ID", "the job");
  return print_chosen(line, "logs job", words, [&](state::LogQuery& query) -> Status {
    RT_ASSIGN(query.submission_id, option_or_word(line, "id", "SUBMISSION_ID"));
    return query.submission_id.empty()
               ? Status(make_error(Code::kInvalid, "SUBMISSION_ID is missing: which job's?"))
               : Status();
  });
}

int run_task(const Words& words) {
  CommandLine line("logs task",
                   "Prints the lines that one task has written, and no others of its worker.");
  declare_common(line);
  line.positional("ID", false)
      .option("id", "ID", "the task's id")
      .option("attempt-number,a", "N", "which attempt (default 0, the first)")
      .flag("err", "its stderr, not its stdout");
  return print_chosen(line, "logs task", words, [&](state::LogQuery& query) -> Status {
    RT_ASSIGN(query.task_id, option_or_word(line, "id", "ID"));
    RT_ASSIGN(auto attempt, line.whole("attempt-number", 0, 1 << 30));
    query.attempt = attempt.value_or(0);
    return query.task_id.empty()
               ? Status(make_error(Code::kInvalid, "ID is missing: which task's?"))
               : Status();
  });
}

}  // namespace

int run_logs(const Words& words) {
  static constexpr std::pair<const char*, int (*)(const Words&)> kKinds[] = {
      {"cluster", run_cluster},
      {"actor", run_actor},
      {"worker", run_worker},
      {"job", run_job_log},
      {"task", run_task}};
  for (const auto& [name, run] : kKinds) {
    if (!words.empty() && words[0] == name) return run(Words(words.begin() + 1, words.end()));
  }
  return run_cluster(words);
}

}  // namespace rt::cli
