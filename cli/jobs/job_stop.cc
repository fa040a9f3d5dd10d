// `rayctl job stop`: ends a job and waits for its end.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/jobs/job_common.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

constexpr int64_t kPollUs = 1'000'000;

Status stop_job(const CommandLine& line) {
  std::string id = line.get("ID");
  RT_ASSIGN(auto server, connect_job_server(line));
  print("Attempting to stop job '{}'\n", id);
  RT_TRY(server->stop(id));
  if (line.has("no-wait")) return {};
  for (;;) {
    RT_ASSIGN(auto job, server->job(id));
    if (is_terminal(job.status())) {
      print_status(job);
      return {};
    }
    print("Job has not exited yet. Status: {}\n", job.status());
    std::fflush(stdout);
    server->pause(kPollUs);
  }
}

}  // namespace

int run_job_stop(const Words& words) {
  CommandLine line("job stop", "Ends a job and waits until it has ended.");
  declare_job_options(line);
  line.flag("no-wait", "return at once").positional("ID", true);
  if (auto code = line.parse(words)) return *code;
  return finish(stop_job(line));
}

}  // namespace rt::cli
