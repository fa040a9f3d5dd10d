// The ranks of a training run that is under way: /api/train/v2/runs/v1/ID/ranks tells where each
// is, and with seconds=N which one the others wait for.
#include <fmt/core.h>

#include <charconv>

#include "daemons/head/http/envelope.h"
#include "daemons/head/http/routes.h"
#include "observability/state/train_ranks.h"
#include "observability/state/train_runs.h"

namespace rt::head {
namespace {

using http::Call;

// Every look occupies a connection for its length; more people look at once hardly ever.
constexpr int kMostLooks = 32;

Result<double> seconds_of(const Call& call) {
  const std::string text = call.query("seconds", "0");
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) ||
      value > state::kMostLookSeconds)
    return make_error(Code::kInvalid, fmt::format("seconds is '{}', but must be a number from 0 to "
                                                  "{}",
                                                  text, state::kMostLookSeconds));
  return value;
}

Result<state::Answer> look(const ApiContext& context, const Call& call) {
  RT_ASSIGN(const double seconds, seconds_of(call));
  RT_ASSIGN(const auto run, state::train_run(context.cluster, call.parts[0], kAskTimeoutUs));
  if (!profiling_enabled(context)) {
    // The page asks for places again and again, and shows the rest of the run without them.
    if (seconds == 0) return state::answer_without_ranks(run.json, {kProfilingIsOff});
    return make_error(Code::kUnsupported, kProfilingIsOff);
  }
  return state::look_at_ranks(context.cluster, run.json, seconds, kAskTimeoutUs);
}

}  // namespace

void add_train_rank_routes(http::Server& server, const ApiContextPtr& context) {
  const QuestionLimit looks(kMostLooks, "looks at ranks", "; try again in some seconds");
  server.on("GET", "/api/train/v2/runs/v1/([0-9a-f]+)/ranks", looks.around([context](Call& call) {
    const auto found = look(*context, call);
    if (!found)
      return http::text(call.response, http_status(found.error().code), found.error().message);
    answer_json(call, found->json);
  }));
}

}  // namespace rt::head
