// Profiles of training runs: /api/train/v2/runs/v1/ID/profiles lists them, .../profile records one.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "common/base/json_text.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/redaction.h"
#include "daemons/head/http/routes.h"
#include "observability/state/train_profiles.h"
#include "observability/state/train_runs.h"

namespace rt::head {
namespace {

using http::Call;

constexpr int64_t kRunTimeoutUs = 10'000'000;
// Every profile occupies a connection until it is there; one run takes one at a time.
constexpr int kMostProfiles = 16;
// The page may only read (see access.h). It asks with this header, which neither a link nor a page
// of another site can make a browser send.
constexpr char kPageHeader[] = "X-Ray-Profile";

Result<int64_t> whole(const std::string& name, const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return make_error(Code::kInvalid,
                      fmt::format("{} is '{}', but must be a whole number", name, text));
  return value;
}

// Adds "0,2" as [0, 2].
Status add_ranks(const std::string& text, state::Json* request) {
  state::Json ranks = state::Json::array();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    RT_ASSIGN(int64_t rank, whole("ranks", text.substr(at, end - at)));
    ranks.push_back(rank);
    at = end + 1;
  }
  (*request)["ranks"] = std::move(ranks);
  return {};
}

// The request as parameters of the path: steps=3&ranks=0,1&profile_memory=0&timeout_s=60.
Status read_params(const Call& call, state::Json* request) {
  for (const auto& [name, text] : call.request.params) {
    if (name == "ranks") {
      RT_TRY(add_ranks(text, request));
      continue;
    }
    RT_ASSIGN(int64_t value, whole(name, text));
    const bool is_flag =
        name == "record_shapes" || name == "profile_memory" || name == "with_stack";
    (*request)[name] = is_flag ? state::Json(value != 0) : state::Json(value);
  }
  return {};
}

Status read_request(const Call& call, state::Json* request) {
  *request = state::Json::object();
  if (call.request.method == "GET") {
    if (call.request.has_header(kPageHeader)) return read_params(call, request);
    return make_error(Code::kInvalid,
                      fmt::format("send POST to record a profile; GET is for the page, with the "
                                  "header {}",
                                  kPageHeader));
  }
  if (!call.body.empty()) *request = parse_ordered_json(call.body);
  if (request->is_object()) return {};
  return make_error(Code::kInvalid,
                    "the body must be a JSON object, such as {\"steps\": 3, \"ranks\": [0]}");
}

class TrainProfileRoutes {
 public:
  explicit TrainProfileRoutes(ApiContextPtr context) : context_(std::move(context)) {}

  void list(Call& call) const {
    auto found = state::train_profiles(context_->cluster, call.parts[0], kRunTimeoutUs);
    if (!found) return fail(call, found.error());
    redact_for_browsers(call.request, &found->json);
    answer_json(call, found->json);
  }

  void record(Call& call) const {
    auto answer = recorded(call);
    if (!answer) return fail(call, answer.error());
    answer_json(call, answer->json);
  }

 private:
  Result<state::Answer> recorded(const Call& call) const {
    if (!profiling_enabled(*context_)) return make_error(Code::kUnsupported, kProfilingIsOff);
    state::Json request;
    RT_TRY(read_request(call, &request));
    RT_ASSIGN(auto run, state::train_run(context_->cluster, call.parts[0], kRunTimeoutUs));
    return state::profile_train_run(context_->cluster, run.json, std::move(request), kRunTimeoutUs);
  }

  ApiContextPtr context_;
};

}  // namespace

void add_train_profile_routes(http::Server& server, const ApiContextPtr& context,
                              const QuestionLimit& questions) {
  TrainProfileRoutes routes(context);
  server.on("GET", "/api/train/v2/runs/v1/([0-9a-f]+)/profiles",
            questions.around([routes](Call& call) { routes.list(call); }));
  const QuestionLimit profiles(kMostProfiles, "profiles of training runs",
                               "; try again when one of them has been recorded");
  for (const char* method : {"POST", "GET"})
    server.on(method, "/api/train/v2/runs/v1/([0-9a-f]+)/profile",
              profiles.around([routes](Call& call) { routes.record(call); }));
}

}  // namespace rt::head
