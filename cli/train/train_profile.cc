// `rayctl train profile`: has the ranks of a training run that is under way record their next
// steps.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/train/train_common.h"
#include "cli/train/train_profiles_text.h"
#include "common/base/utf8.h"
#include "observability/state/over_http.h"
#include "observability/state/train_profiles.h"

namespace rt::cli {
namespace {

constexpr int64_t kRunTimeoutUs = 30'000'000;
constexpr int64_t kDefaultSteps = 3, kMostSteps = 1000, kDefaultTimeoutS = 120;

// Adds "0,2" as [0, 2].
Status add_ranks(const std::string& text, state::Json* request) {
  state::Json ranks = state::Json::array();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    int64_t rank = 0;
    auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, rank);
    if (at == end || error != std::errc() || stop != text.data() + end || rank < 0)
      return make_error(
          Code::kInvalid,
          fmt::format("--ranks is '{}': it takes numbers of ranks, such as 0,2", excerpt(text)));
    ranks.push_back(rank);
    at = end + 1;
  }
  (*request)["ranks"] = std::move(ranks);
  return {};
}

Result<state::Answer> request_of(const CommandLine& line) {
  RT_ASSIGN(auto steps, line.whole("steps", 1, kMostSteps));
  RT_ASSIGN(auto timeout_s, line.whole("timeout", 1, CommandLine::kLongestTimeoutS));
  state::Json request = {{"steps", steps.value_or(kDefaultSteps)},
                         {"ranks", nullptr},
                         {"record_shapes", !line.has("no-shapes")},
                         {"profile_memory", !line.has("no-memory")},
                         {"with_stack", !line.has("no-stack")},
                         {"timeout_s", timeout_s.value_or(kDefaultTimeoutS)}};
  if (line.has("ranks")) RT_TRY(add_ranks(line.get("ranks"), &request));
  return state::Answer{std::move(request)};
}

void tell_of_wait(const CommandLine& line, const state::Json& request) {
  if (!::isatty(STDERR_FILENO)) return;
  const int64_t steps = number_of(request, "steps");
  print(stderr,
        "Recording {} of {}. Ctrl-C ends the wait, not the profile: `rayctl train show` names it "
        "when it is there.\n",
        steps == 1 ? "a step" : fmt::format("{} steps", steps), excerpt(line.get("NAME")));
}

Status take_profile(const CommandLine& line, state::Json request) {
  RT_ASSIGN(auto cluster, state_cluster(line.get("address")));
  RT_ASSIGN(auto run, named_train_run(cluster, line.get("NAME"), kRunTimeoutUs));
  tell_of_wait(line, request);
  auto answer =
      state::is_http(cluster.head_address)
          ? state::profile_train_run_over_http(cluster, text_of(run.json, "id"), request,
                                               kRunTimeoutUs)
          : state::profile_train_run(cluster, run.json, std::move(request), kRunTimeoutUs);
  if (!answer) return answer.error();
  if (line.for_programs()) {
    print_data(line, answer->json);
  } else {
    print("{}", train_profile_text(answer->json));
  }
  return {};
}

}  // namespace

int run_train_profile(const Words& words) {
  CommandLine line("train profile",
                   "Records the next steps of a training run that is under way with PyTorch's "
                   "profiler, on all its ranks at once, and says where their time goes. The traces "
                   "of the ranks and one of all of them are written beside the run's folder. NAME "
                   "is the run's name (its newest run) or its id.");
  line.address_option()
      .option("steps,s", "N", "steps to record, up to 1000 (default 3)")
      .option("ranks", "N,N,...", "only these ranks (default: all)")
      .flag("no-memory", "without the memory over time")
      .flag("no-stack", "without the Python stack of each operator")
      .flag("no-shapes", "without the shapes of tensors")
      .timeout_option("fail if a rank makes no step for so long (default 120)")
      .format_option("text|json|yaml")
      .positional("NAME", true);
  if (auto code = line.parse(words)) return *code;
  auto request = request_of(line);
  if (!request) return usage_error("train profile", request.error().message);
  return finish(take_profile(line, std::move(request->json)));
}

}  // namespace rt::cli
