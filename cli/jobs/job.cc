// `rayctl job`: dispatches to the subcommands.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/terminal/help_text.h"
#include "cli/terminal/print.h"
#include "cli/terminal/suggest.h"

namespace rt::cli {

int run_job(const Words& words) {
  static constexpr std::pair<const char*, int (*)(const Words&)> kCommands[] = {
      {"submit", run_job_submit}, {"status", run_job_status}, {"logs", run_job_logs},
      {"list", run_job_list},     {"stop", run_job_stop},     {"delete", run_job_delete}};
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print("{}", commands_text("job", command_infos()));
    return words.empty() ? kExitUsage : kExitOk;
  }
  for (const auto& [name, run] : kCommands) {
    if (words[0] == name) return run(Words(words.begin() + 1, words.end()));
  }
  return usage_error("job", "no such command: job " + excerpt(words[0]) +
                                did_you_mean(words[0], command_names("job")));
}

}  // namespace rt::cli
