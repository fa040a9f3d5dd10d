// `rayctl train list`: the training runs of the cluster.
#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/train/train_common.h"
#include "cli/train/train_text.h"
#include "common/base/clock.h"

namespace rt::cli {
namespace {

Status show_runs(const CommandLine& line, int64_t timeout_us) {
  RT_ASSIGN(auto cluster, state_cluster(line));
  RT_ASSIGN(auto runs, all_train_runs(cluster, timeout_us));
  if (line.for_programs()) {
    print_data(line, runs.json);
  } else {
    print("{}", train_list_text(runs.json, wall_now_us() / 1000));
  }
  return {};
}

}  // namespace

int run_train_list(const Words& words) {
  CommandLine line("train list", "Lists training runs, the newest first.");
  line.address_option().format_option().timeout_option();
  if (auto code = line.parse(words)) return *code;
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("train list", timeout.error().message);
  return finish(show_runs(line, *timeout));
}

}  // namespace rt::cli
