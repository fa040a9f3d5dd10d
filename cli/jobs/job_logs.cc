// `rayctl job logs`: prints the output of a job, or follows it.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/jobs/job_common.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

Status show_logs(const CommandLine& line) {
  RT_ASSIGN(auto server, connect_job_server(line));
  bool follow = line.has("follow");
  RT_ASSIGN(auto job, copy_log(*server, line.get("ID"), follow));
  if (follow) {
    print("\n");
    print_status(job);
  }
  return {};
}

}  // namespace

int run_job_logs(const Words& words) {
  CommandLine line("job logs", "Prints a job's output.");
  declare_job_options(line);
  line.flag("follow,f", "until the job ends").positional("ID", true);
  if (auto code = line.parse(words)) return *code;
  return finish(show_logs(line));
}

}  // namespace rt::cli
