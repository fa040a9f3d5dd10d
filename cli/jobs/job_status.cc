// `rayctl job status`: shows the state of one job.
#include "cli/commands.h"
#include "cli/jobs/job_common.h"

namespace rt::cli {
namespace {

Status show_status(const CommandLine& line) {
  RT_ASSIGN(auto server, connect_job_server(line));
  RT_ASSIGN(auto job, server->job(line.get("ID")));
  print_status(job);
  return {};
}

}  // namespace

int run_job_status(const Words& words) {
  CommandLine line("job status", "Shows how a job is doing.");
  declare_job_options(line);
  line.positional("ID", true);
  if (auto code = line.parse(words)) return *code;
  return finish(show_status(line));
}

}  // namespace rt::cli
