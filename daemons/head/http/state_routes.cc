// The state API: /api/v0/<resource>, /api/v0/<resource>/summarize.
#include <fmt/core.h>

#include <charconv>

#include "daemons/head/http/envelope.h"
#include "daemons/head/http/routes.h"

namespace rt::head {
namespace {

using http::Call;

std::vector<std::string> values(const http::Request& request, const char* name) {
  std::vector<std::string> all;
  for (size_t i = 0, count = request.get_param_value_count(name); i < count; ++i) all.push_back(request.get_param_value(name, i));
  return all;
}

Result<int64_t> whole(const Call& call, const char* name, int64_t otherwise) {
  std::string text = call.query(name);
  if (text.empty()) return otherwise;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return make_error(Code::kInvalid, std::string(name) + " is '" + text + "': it takes a whole number from 0");
  return value;
}

bool yes(const std::string& text) { return text == "1" || text == "true" || text == "True"; }

Result<state::Query> query_of(const Call& call, const std::string& resource) {
  state::Query query;
  query.resource = resource;
  query.detail = yes(call.query("detail"));
  RT_ASSIGN(query.limit, whole(call, "limit", query.limit));
  if (query.limit > state::kMaxLimit) return make_error(Code::kInvalid, fmt::format("Given limit {} exceeds the supported limit {}.", query.limit, state::kMaxLimit));
  RT_ASSIGN(int64_t seconds, whole(call, "timeout", 30));
  query.timeout_us = seconds * 1'000'000;
  auto keys = values(call.request, "filter_keys"), predicates = values(call.request, "filter_predicates"), wanted = values(call.request, "filter_values");
  if (keys.size() != predicates.size() || keys.size() != wanted.size()) {
    return make_error(Code::kInvalid, fmt::format("{} filter_keys, {} filter_predicates and {} filter_values: each filter needs one of all three", keys.size(), predicates.size(), wanted.size()));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (predicates[i] != "=" && predicates[i] != "!=") return make_error(Code::kInvalid, fmt::format("Unsupported filter predicate {}: it is = or !=", predicates[i]));
    query.filters.push_back({keys[i], predicates[i] == "=", wanted[i]});
  }
  return query;
}

}  // namespace

void add_state_routes(http::Server& server, const ApiContextPtr& context) {
  server.on("GET", "/api/v0/(actors|jobs|nodes|placement_groups|workers|tasks|objects|runtime_envs|cluster_events)", [context](Call& call) {
    auto query = query_of(call, call.parts[0]);
    if (!query) return fail(call, query.error());
    auto found = state::list(context->cluster, *query);
    if (!found) return fail(call, found.error());
    succeed(call, "", {{"result", std::move(found->json)}}, Keys::kAsTheyAre);
  });
  server.on("GET", "/api/v0/(actors|tasks|objects)/summarize", [context](Call& call) {
    auto query = query_of(call, call.parts[0]);
    if (!query) return fail(call, query.error());
    auto found = state::summarize(context->cluster, *query);
    if (!found) return fail(call, found.error());
    Json warning = found->json.value("partial_failure_warning", Json());
    found->json.erase("partial_failure_warning");
    succeed(call, "", {{"result", {{"result", {{"node_id_to_summary", {{"cluster", std::move(found->json)}}}}}, {"partial_failure_warning", warning}, {"warnings", nullptr}}}}, Keys::kAsTheyAre);
  });
}

}  // namespace rt::head
