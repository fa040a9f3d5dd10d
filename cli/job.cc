#include <fmt/core.h>

#include "cli/commands.h"

namespace rt::cli {

int run_job(const Words& words) {
  struct Command {
    const char* name;
    int (*run)(const Words&);
    const char* summary;
  };
  static constexpr Command kCommands[] = {{"submit", run_job_submit, "run a program on the cluster and follow its output"},
                                          {"status", run_job_status, "how a job is doing"},
                                          {"logs", run_job_logs, "a job's output"},
                                          {"list", run_job_list, "all submitted jobs"},
                                          {"stop", run_job_stop, "end a job"},
                                          {"delete", run_job_delete, "forget a job that has ended"}};
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    fmt::print("Usage: {} job COMMAND [options]\n\nCommands:\n", program_name());
    for (const auto& command : kCommands) fmt::print("  {:<8} {}\n", command.name, command.summary);
    return words.empty() ? kExitUsage : kExitOk;
  }
  for (const auto& command : kCommands) {
    if (words[0] == command.name) return command.run(Words(words.begin() + 1, words.end()));
  }
  return usage_error("job", "no such command: job " + words[0]);
}

}  // namespace rt::cli
