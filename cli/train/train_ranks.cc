// `rayctl train stragglers`: samples the ranks of a training run and says which one the others wait
// for.
#include "observability/state/train_ranks.h"
#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/progress.h"
#include "cli/train/train_common.h"
#include "cli/train/train_ranks_text.h"

namespace rt::cli {
namespace {

constexpr int64_t kDefaultMs = 2000, kLeastMs = 100;
constexpr auto kMostMs = static_cast<int64_t>(state::kMostLookSeconds * 1000);

Status show_stragglers(const CommandLine& line, double seconds, int64_t timeout_us) {
  RT_ASSIGN(auto cluster, state_cluster(line));
  RT_ASSIGN(auto run, named_train_run(cluster, line.get("NAME"), timeout_us));
  auto ask = [&] {
    TimedProgress progress("Looking at the ranks of " + excerpt(line.get("NAME")),
                           static_cast<int64_t>(seconds * 1e6));
    return train_look(cluster, run.json, seconds, timeout_us);
  };
  RT_ASSIGN(auto look, ask());
  if (line.for_programs()) {
    print_data(line, look.json);
  } else {
    print("{}", train_look_text(look.json));
  }
  return {};
}

}  // namespace

int run_train_stragglers(const Words& words) {
  CommandLine line("train stragglers",
                   "Looks for some seconds at where each rank of a training run spends its time, "
                   "and names the ranks that the others wait for. NAME is the run's name (its "
                   "newest run) or its id.");
  line.address_option()
      .option("seconds,s", "SECONDS", "how long to look (default 2): at least two steps of the run")
      .format_option("text|json|yaml")
      .timeout_option("for the answers, beyond the seconds (default 30)")
      .positional("NAME", true);
  if (auto code = line.parse(words)) return *code;
  auto seconds_ms = line.milliseconds("seconds", kLeastMs, kMostMs);
  if (!seconds_ms) return usage_error("train stragglers", seconds_ms.error().message);
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("train stragglers", timeout.error().message);
  return finish(show_stragglers(line, static_cast<double>(seconds_ms->value_or(kDefaultMs)) / 1000,
                                *timeout));
}

}  // namespace rt::cli
