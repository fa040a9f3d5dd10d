// `rayctl job delete`: removes the record of a job that has ended.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/jobs/job_common.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

Status remove(const CommandLine& line) {
  std::string id = line.get("ID");
  RT_ASSIGN(auto server, connect_job_server(line));
  RT_TRY(server->remove(id));
  print("{}", boxed(fmt::format("Job '{}' deleted successfully", id)));
  return {};
}

}  // namespace

int run_job_delete(const Words& words) {
  CommandLine line("job delete", "Forgets a job that has ended.");
  declare_job_options(line);
  line.positional("ID", true);
  if (auto code = line.parse(words)) return *code;
  return finish(remove(line));
}

}  // namespace rt::cli
