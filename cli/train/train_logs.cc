// `rayctl train logs`: what a rank of a training run, or its controller, has printed and logged.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/commands/log_print.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/train/train_common.h"
#include "cli/train/train_text.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

constexpr int64_t kDefaultLines = 1000, kMostLines = 1'000'000'000, kMostRank = 1'000'000,
                  kMostAttempt = 1'000'000'000;

struct Choice {
  state::LogQuery query;
  int64_t rank = 0, attempt = 0;  // Attempt 0 is the newest one.
  bool controller = false, system = false, raw = false;
};

Result<Choice> choice_of(const CommandLine& line) {
  Choice choice;
  RT_ASSIGN(auto lines, line.whole("tail", -1, kMostLines));
  RT_ASSIGN(auto rank, line.whole("rank", 0, kMostRank));
  RT_ASSIGN(auto attempt, line.whole("attempt", 1, kMostAttempt));
  RT_ASSIGN(choice.query.timeout_us, timeout_us(line));
  choice.query.lines = lines.value_or(kDefaultLines);
  choice.query.follow = line.has("follow");
  choice.rank = rank.value_or(0);
  choice.attempt = attempt.value_or(0);
  choice.controller = line.has("controller");
  choice.system = line.has("system");
  choice.raw = line.has("raw");
  if (choice.controller && (rank || attempt))
    return make_error(Code::kInvalid,
                      "--controller takes neither --rank nor --attempt: a run has one controller");
  return choice;
}

// The name below the session's directory of logs: "train/ray-train-app-worker-ID.log".
std::string log_name(const std::string& path, bool system) {
  std::string name = path.substr(path.rfind('/') + 1);
  const std::string app = "ray-train-app-";
  if (system && name.starts_with(app)) name = "ray-train-sys-" + name.substr(app.size());
  return "train/" + name;
}

Result<state::Answer> worker_of(const state::Json& run, const Choice& choice) {
  const state::Json* attempt = find_attempt(run, choice.attempt);
  if (!attempt || (*attempt)["workers"].empty())
    return make_error(
        Code::kNotFound,
        choice.attempt > 0
            ? fmt::format("attempt {} of run {} is not known, or has had no ranks", choice.attempt,
                          printable(text_of(run, "name")))
            : fmt::format("run {} has no ranks yet", printable(text_of(run, "name"))));
  for (const state::Json& worker : (*attempt)["workers"]) {
    if (number_of(worker, "world_rank") == choice.rank) return state::Answer{worker};
  }
  return make_error(Code::kNotFound,
                    fmt::format("run {} has no rank {}: attempt {} has the ranks 0 to {}",
                                printable(text_of(run, "name")), choice.rank,
                                attempt_number(*attempt), (*attempt)["workers"].size() - 1));
}

// Completes the query: on which node the log is, and its name there.
Status choose_log(const state::Json& run, Choice* choice) {
  if (!choice->controller) {
    RT_ASSIGN(const auto worker, worker_of(run, *choice));
    choice->query.node_id = text_of(worker.json, "node_id");
    choice->query.filename = log_name(text_of(worker.json, "log_file_path"), choice->system);
    return {};
  }
  choice->query.filename = log_name(text_of(run, "controller_log_file_path"), choice->system);
  choice->query.node_id = text_of(run, "controller_node_id");
  return {};
}

// Prints the log, with each line in the form for people.
Status print_lines(const state::Cluster& cluster, const state::LogQuery& query) {
  std::string rest;
  Status printed;
  auto take = [&](std::string_view piece) {
    rest += piece;
    size_t begin = 0;
    for (size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      write_output(train_log_line(rest.substr(begin, end - begin)) + "\n");
    rest.erase(0, begin);
    printed = flush_output();
    return static_cast<bool>(printed);
  };
  RT_TRY(pass_log(cluster, query, take));
  if (!rest.empty()) write_output(train_log_line(rest) + "\n");
  return printed;
}

Status show_log(const CommandLine& line, Choice choice) {
  RT_ASSIGN(auto cluster, state_cluster(line));
  RT_ASSIGN(auto run, named_train_run(cluster, line.get("NAME"), choice.query.timeout_us));
  RT_TRY(choose_log(run.json, &choice));
  Status outcome =
      choice.raw ? print_log(cluster, choice.query) : print_lines(cluster, choice.query);
  // The file may not exist yet, because it is made with its first line.
  if (!outcome && outcome.error().code == Code::kNotFound &&
      outcome.error().message.starts_with("there is no log file"))
    return make_error(Code::kNotFound,
                      fmt::format("nothing has been logged yet ({})", outcome.error().message));
  return outcome;
}

}  // namespace

int run_train_logs(const Words& words) {
  CommandLine line("train logs",
                   "Prints what a rank of a training run has printed and logged. NAME is the run's "
                   "name (its newest run) or its id.");
  line.address_option()
      .option("rank", "N", "which rank (default 0)")
      .option("attempt", "N", "which attempt, the first is 1 (default: the newest)")
      .flag("controller", "the run's controller, not a rank")
      .flag("system", "only ray.train's own lines, those of the level DEBUG, too")
      .flag("follow,f", "keep printing what is written from now on")
      .option("tail", "N", "the last lines (default 1000; -1: all)")
      .flag("raw", "the lines as they are in the file: JSON")
      .timeout_option("for each answer (default 30)")
      .positional("NAME", true);
  if (auto code = line.parse(words)) return *code;
  auto choice = choice_of(line);
  if (!choice) return usage_error("train logs", choice.error().message);
  return finish(show_log(line, std::move(*choice)));
}

}  // namespace rt::cli
