// The state API: /api/v0/<resource> and /api/v0/<resource>/summarize.
#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "common/base/clock.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/query.h"
#include "daemons/head/http/redaction.h"
#include "daemons/head/http/routes.h"

namespace rt::head {
namespace {

using http::Call;

constexpr int64_t kMaxDelayS = 600;

// Returns all values of a parameter in their order.
std::vector<std::string> values(const http::Request& request, std::string_view name) {
  std::vector<std::string> all;
  for (const auto& [key, value] : request.params) {
    if (key == name) all.push_back(value);
  }
  return all;
}

Result<state::Query> query_of(const Call& call, const std::string& resource) {
  state::Query query;
  query.resource = resource;
  query.detail = is_yes(call.query("detail"));
  query.exclude_driver = is_yes(call.query("exclude_driver", "true"));
  RT_ASSIGN(query.limit, whole_number(call, "limit", query.limit));
  if (query.limit > state::kMaxLimit)
    return make_error(Code::kInvalid, fmt::format("Given limit {} exceeds the supported limit {}.",
                                                  query.limit, state::kMaxLimit));
  RT_ASSIGN(query.timeout_us, timeout_us_of(call));
  auto keys = values(call.request, "filter_keys"),
       predicates = values(call.request, "filter_predicates"),
       wanted = values(call.request, "filter_values");
  if (keys.size() != predicates.size() || keys.size() != wanted.size()) {
    return make_error(Code::kInvalid,
                      fmt::format("{} filter_keys, {} filter_predicates and {} filter_values: each "
                                  "filter needs one of all three",
                                  keys.size(), predicates.size(), wanted.size()));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (predicates[i] != "=" && predicates[i] != "!=")
      return make_error(
          Code::kInvalid,
          fmt::format("Unsupported filter predicate {}: it is = or !=", predicates[i]));
    query.filters.push_back({keys[i], predicates[i] == "=", wanted[i]});
  }
  // Wrong filters are reported before any process is asked, even if there is no row to filter.
  RT_TRY(state::Filters::bind(*state::find_resource(resource), query.filters));
  return query;
}

void list_resource(Call& call, const ApiContext& context) {
  auto query = query_of(call, call.parts[0]);
  if (!query) return fail(call, query.error());
  auto found = state::list(context.cluster, *query);
  if (!found) return fail(call, found.error());
  redact_for_browsers(call.request, &found->json);
  succeed(call, "", {{"result", std::move(found->json)}}, Keys::kAsTheyAre);
}

void summarize(Call& call, const ApiContext& context) {
  const std::string& resource = call.parts[0];
  std::string by = call.query("summary_by");
  const char* usual = resource == "tasks"              ? "func_name"
                      : resource == "actors"           ? "class"
                      : resource == "placement_groups" ? "strategy"
                                                       : "callsite";
  const char* named = resource == "tasks" ? "func_name or lineage" : usual;
  const bool by_lineage = resource == "tasks" && by == "lineage";
  if (!by.empty() && by != usual && !by_lineage)
    return fail(
        call, make_error(Code::kInvalid, fmt::format("summary_by is '{}': {} are summarized by {}",
                                                     by, resource, named)));
  auto query = query_of(call, resource);
  if (!query) return fail(call, query.error());
  query->by_lineage = by_lineage;
  auto found = state::summarize(context.cluster, *query);
  if (!found) return fail(call, found.error());
  Json warning = found->json.value("partial_failure_warning", Json());
  found->json.erase("partial_failure_warning");
  Json notes = found->json.value("warnings", Json());
  found->json.erase("warnings");
  succeed(call, "",
          {{"result",
            {{"result", {{"node_id_to_summary", {{"cluster", std::move(found->json)}}}}},
             {"partial_failure_warning", warning},
             {"warnings", notes}}}},
          Keys::kAsTheyAre);
}

// Answers after a delay, for tests of clients.
void delay(Call& call) {
  int64_t seconds = std::min<int64_t>(kMaxDelayS, std::atoll(call.parts[0].c_str()));
  for (const int64_t end_us = steady_now_us() + seconds * 1'000'000;
       steady_now_us() < end_us && call.client.waits();) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::min<int64_t>(100'000, end_us - steady_now_us())));
  }
  succeed(call, "", Json::object(), Keys::kAsTheyAre);
}

}  // namespace

void add_state_routes(http::Server& server, const ApiContextPtr& context,
                      const QuestionLimit& questions) {
  server.on(
      "GET",
      "/api/v0/"
      "(actors|jobs|nodes|placement_groups|workers|tasks|objects|runtime_envs|cluster_events)",
      questions.around([context](Call& call) { list_resource(call, *context); }));
  server.on("GET", "/api/v0/(actors|tasks|objects|placement_groups)/summarize",
            questions.around([context](Call& call) { summarize(call, *context); }));
  server.on("GET", "/api/v0/delay/([0-9]{1,6})", questions.around(delay));
}

}  // namespace rt::head
