#include "observability/state/over_http.h"

#include <fmt/core.h>
#include <httplib.h>

#include "common/base/http_status.h"
#include "common/base/json_text.h"
#include "common/http/client_tls.h"
#include "observability/state/log_position.h"
#include "observability/state/train_profiles.h"
#include "observability/state/train_runs.h"

namespace rt::state {
namespace {

constexpr int64_t kConnectS = 5;
// The limit to connect, and again to answer: below 3 s together.
constexpr time_t kProbeUs = 1'400'000;
constexpr size_t kMostErrorBytes = 10'000;

// The error message in a server's answer: "msg" of the JSON envelope, or the body itself.
std::string reason(const std::string& body) {
  Json answer = parse_ordered_json(body);
  if (answer.is_object() && answer.contains("msg") && answer["msg"].is_string())
    return answer["msg"];
  return body.substr(0, kMostErrorBytes);
}

Error no_answer(const std::string& address, httplib::Error why) {
  if (http::is_untrusted(why)) {
    return make_error(Code::kUnauthenticated,
                      fmt::format("{} shows a certificate that is not trusted here: "
                                  "RAY_TLS_CA_CERT names the authorities' file (docs/tls.md)",
                                  address));
  }
  return make_error(Code::kUnavailable,
                    fmt::format("{} does not answer ({}): is the cluster running, and is this the "
                                "address of its HTTP interface?",
                                address, httplib::to_string(why)));
}

// One HTTP client for the requests of one question.
class HttpRequests {
 public:
  // Probes the server first. kInvalid if the address is no URL.
  static Result<HttpRequests> at(const Cluster& cluster, int64_t timeout_us) {
    std::string address = cluster.head_address;
    while (address.ends_with('/')) address.pop_back();
    HttpRequests requests{cluster, std::make_unique<httplib::Client>(address)};
    if (!requests.client_->is_valid())
      return make_error(Code::kInvalid,
                        fmt::format("'{}' is not the address of an HTTP interface: it "
                                    "takes http://HOST:PORT or https://HOST:PORT",
                                    cluster.head_address));
    http::set_trusted_certificates(*requests.client_);
    RT_TRY(probe_http(address));
    requests.client_->set_connection_timeout(kConnectS);
    requests.client_->set_read_timeout(std::max<int64_t>(1, timeout_us / 1'000'000) + kConnectS);
    return requests;
  }

  // Passes the body of the answer to `take`. `position` is set to the position that the answer's
  // header names, if it has one. Error statuses become errors with the server's message.
  Status get(const std::string& path, const httplib::Params& params, const TakeLog& take,
             std::string* position = nullptr) {
    httplib::Headers headers;
    if (!cluster_.token.empty()) headers.emplace("Authorization", "Bearer " + cluster_.token);
    std::string error;
    int status = 0;
    bool enough = false;
    auto answer = client_->Get(
        path, params, headers,
        [&](const httplib::Response& response) {
          status = response.status;
          if (position && response.has_header(kLogPositionHeader))
            *position = response.get_header_value(kLogPositionHeader);
          return true;
        },
        [&](const char* data, size_t size) {
          if (status == 200) return !(enough = !take({data, size}));
          if (error.size() < kMostErrorBytes) error.append(data, size);
          return true;
        });
    if (enough) return {};
    if (!answer) return no_answer(cluster_.head_address, answer.error());
    if (status == 401 || status == 403) return token_refused(cluster_.head_address, reason(error));
    if (status != 200) return make_error(code_of_http_status(status), reason(error));
    return {};
  }

  // Returns an answer that has no envelope.
  Result<Answer> get_bare(const std::string& path) {
    std::string body;
    RT_TRY(get(path, {}, [&](std::string_view piece) {
      body += piece;
      return true;
    }));
    return bare(body);
  }

  // Sends JSON and returns an answer that has no envelope.
  Result<Answer> post_bare(const std::string& path, const Json& body) {
    httplib::Headers headers;
    if (!cluster_.token.empty()) headers.emplace("Authorization", "Bearer " + cluster_.token);
    auto answer = client_->Post(path, headers, json_text(body), "application/json");
    if (!answer) return no_answer(cluster_.head_address, answer.error());
    const std::string said = reason(answer->body);
    if (answer->status == 401 || answer->status == 403)
      return token_refused(cluster_.head_address, said);
    if (answer->status != 200) return make_error(code_of_http_status(answer->status), said);
    return bare(answer->body);
  }

  Result<Answer> get_result(const std::string& path, const httplib::Params& params) {
    std::string body;
    RT_TRY(get(path, params, [&](std::string_view piece) {
      body += piece;
      return true;
    }));
    Json answer = parse_ordered_json(body);
    if (!answer.is_object() || !answer.contains("data") || !answer["data"].contains("result"))
      return make_error(Code::kProtocol, fmt::format("the answer of {} is not a cluster's state: "
                                                     "is this the address of its HTTP interface?",
                                                     cluster_.head_address));
    return Answer{std::move(answer["data"]["result"])};
  }

 private:
  Result<Answer> bare(const std::string& body) const {
    Json answer = parse_ordered_json(body);
    if (!answer.is_object())
      return make_error(Code::kProtocol, fmt::format("the answer of {} is not a cluster's state: "
                                                     "is this the address of its HTTP interface?",
                                                     cluster_.head_address));
    return Answer{std::move(answer)};
  }

  HttpRequests(const Cluster& cluster, std::unique_ptr<httplib::Client> client)
      : cluster_(cluster), client_(std::move(client)) {}
  Cluster cluster_;
  std::unique_ptr<httplib::Client> client_;
};

std::string seconds(int64_t us) { return std::to_string(std::max<int64_t>(1, us / 1'000'000)); }

void add(httplib::Params* params, const char* name, const std::string& value) {
  if (!value.empty()) params->emplace(name, value);
}

}  // namespace

Error token_refused(const std::string& address, const std::string& said) {
  return make_error(Code::kUnauthenticated,
                    fmt::format("{} refuses the token ({}): set RAY_AUTH_TOKEN or put the "
                                "cluster's into ~/.ray/auth_token",
                                address, said));
}

Status probe_http(const std::string& address, const std::string& verify) {
  size_t slash = address.find('/', address.find("//") + 2);
  httplib::Client client(address.substr(0, slash));
  http::set_trusted_certificates(client, verify);
  client.set_connection_timeout(0, kProbeUs);
  client.set_read_timeout(0, kProbeUs);
  client.set_write_timeout(0, kProbeUs);
  auto answer = client.Get("/api/version");
  // A server with an untrusted certificate has answered; the actual request will report it.
  return answer || http::is_untrusted(answer.error()) ? Status()
                                                      : no_answer(address, answer.error());
}

bool is_http(const std::string& address) {
  return address.starts_with("http://") || address.starts_with("https://");
}

namespace {

Result<Answer> query_result(const Cluster& cluster, const std::string& path, const Query& query) {
  RT_ASSIGN(HttpRequests requests, HttpRequests::at(cluster, query.timeout_us));
  httplib::Params params{{"limit", std::to_string(query.limit)},
                         {"timeout", seconds(query.timeout_us)},
                         {"detail", query.detail ? "1" : "0"},
                         {"exclude_driver", query.exclude_driver ? "true" : "false"}};
  for (const Filter& filter : query.filters) {
    params.emplace("filter_keys", filter.key);
    params.emplace("filter_predicates", filter.equal ? "=" : "!=");
    params.emplace("filter_values", filter.value);
  }
  return requests.get_result("/api/v0/" + path, params);
}

}  // namespace

// The server's JSON objects have their keys in alphabetical order, so the rows are brought into the
// order of the columns.
Result<Answer> list_over_http(const Cluster& cluster, const Query& query) {
  RT_ASSIGN(Answer answer, query_result(cluster, query.resource, query));
  const Resource* resource = find_resource(query.resource);
  auto rows = answer.json.find("result");
  if (!resource || rows == answer.json.end() || !rows->is_array()) return answer;
  for (Json& row : *rows) {
    if (!row.is_object()) continue;
    Json ordered = Json::object();
    for (const Column& column : resource->columns) {
      if (auto cell = row.find(column.name); cell != row.end())
        ordered[column.name] = std::move(*cell);
    }
    for (auto& [name, cell] : row.items()) {
      if (resource->column(name) < 0) ordered[name] = std::move(cell);
    }
    row = std::move(ordered);
  }
  return answer;
}

Result<Answer> summarize_over_http(const Cluster& cluster, const Query& query) {
  RT_ASSIGN(Answer answer, query_result(cluster, query.resource + "/summarize", query));
  Json summary = answer.json["result"]["node_id_to_summary"]["cluster"];
  summary["partial_failure_warning"] = answer.json["partial_failure_warning"];
  return Answer{std::move(summary)};
}

Result<Answer> list_logs_over_http(const Cluster& cluster, const std::string& node_id,
                                   const std::string& node_ip, const std::string& glob,
                                   int64_t timeout_us) {
  RT_ASSIGN(HttpRequests requests, HttpRequests::at(cluster, timeout_us));
  httplib::Params params{{"timeout", seconds(timeout_us)}};
  add(&params, "node_id", node_id);
  add(&params, "node_ip", node_ip);
  add(&params, "glob", glob);
  return requests.get_result("/api/v0/logs", params);
}

Result<Answer> train_runs_over_http(const Cluster& cluster, int64_t timeout_us) {
  RT_ASSIGN(HttpRequests requests, HttpRequests::at(cluster, timeout_us));
  RT_ASSIGN(Answer answer, requests.get_bare("/api/train/v2/runs/v1"));
  std::vector<Json> runs;
  for (const Json& one : answer.json.value("train_runs", Json::array())) {
    // parse_train_run() checks the record, and other functions rely on these checks.
    if (Json run = parse_train_run(json_text(one)); !run.is_null()) runs.push_back(std::move(run));
  }
  answer.json["train_runs"] = newest_first(std::move(runs));
  return answer;
}

Result<Answer> train_metrics_over_http(const Cluster& cluster, const std::string& run_id,
                                       int64_t timeout_us) {
  RT_ASSIGN(HttpRequests requests, HttpRequests::at(cluster, timeout_us));
  return requests.get_bare(fmt::format("/api/train/v2/runs/v1/{}/metrics", run_id));
}

Result<Answer> look_at_ranks_over_http(const Cluster& cluster, const std::string& run_id,
                                       double seconds, int64_t timeout_us) {
  const int64_t looks_us = static_cast<int64_t>(seconds * 1e6);
  RT_ASSIGN(HttpRequests requests, HttpRequests::at(cluster, timeout_us + looks_us));
  return requests.get_bare(
      fmt::format("/api/train/v2/runs/v1/{}/ranks?seconds={}", run_id, seconds));
}

Result<Answer> train_profiles_over_http(const Cluster& cluster, const std::string& run_id,
                                        int64_t timeout_us) {
  RT_ASSIGN(HttpRequests requests, HttpRequests::at(cluster, timeout_us));
  return requests.get_bare(fmt::format("/api/train/v2/runs/v1/{}/profiles", run_id));
}

Result<Answer> profile_train_run_over_http(const Cluster& cluster, const std::string& run_id,
                                           const Json& request, int64_t timeout_us) {
  RT_ASSIGN(HttpRequests requests,
            HttpRequests::at(cluster, timeout_us + longest_profile_us(request)));
  return requests.post_bare(fmt::format("/api/train/v2/runs/v1/{}/profile", run_id), request);
}

namespace {

httplib::Params params_of(const LogQuery& query) {
  httplib::Params params{{"lines", std::to_string(query.lines)},
                         {"suffix", query.suffix},
                         {"timeout", seconds(query.timeout_us)},
                         {"attempt_number", std::to_string(query.attempt)},
                         {"filter_ansi_code", query.without_colours ? "true" : "false"},
                         {"for_people", query.for_people ? "true" : "false"}};
  add(&params, "node_id", query.node_id);
  add(&params, "node_ip", query.node_ip);
  add(&params, "filename", query.filename);
  add(&params, "actor_id", query.actor_id);
  add(&params, "task_id", query.task_id);
  add(&params, "submission_id", query.submission_id);
  add(&params, "position", query.position);
  if (query.pid > 0) add(&params, "pid", std::to_string(query.pid));
  if (query.follow)
    add(&params, "interval", fmt::format("{:.3f}", static_cast<double>(query.interval_us) / 1e6));
  return params;
}

}  // namespace

Status read_log_over_http(const Cluster& cluster, const LogQuery& query, const TakeLog& take) {
  // A followed log may be silent for any time, so the read timeout is a year.
  RT_ASSIGN(HttpRequests requests,
            HttpRequests::at(
                cluster, query.follow ? int64_t{365} * 24 * 3600 * 1'000'000 : query.timeout_us));
  return requests.get(query.follow ? "/api/v0/logs/stream" : "/api/v0/logs/file", params_of(query),
                      take);
}

struct HttpLogFollowing::Impl {
  Cluster cluster;
  LogQuery query;
  std::optional<HttpRequests> requests;  // Empty until the server has answered, and after an error.

  Result<std::string> next() {
    if (!requests) {
      RT_ASSIGN(requests, HttpRequests::at(cluster, query.timeout_us));
    }
    std::string data, position;
    Status got = requests->get(
        "/api/v0/logs/piece", params_of(query),
        [&](std::string_view some) {
          data += some;
          return true;
        },
        &position);
    // Only a complete answer advances the position; an interrupted one is requested again.
    if (got && !position.empty()) {
      query.position = position;
      return data;
    }
    requests.reset();
    if (got || got.error().code == Code::kNotFound)
      return make_error(Code::kUnsupported,
                        fmt::format("{} does not hand out logs in pieces", cluster.head_address));
    return got.error();
  }
};

HttpLogFollowing::HttpLogFollowing(const Cluster& cluster, const LogQuery& query)
    : impl_(std::make_unique<Impl>(Impl{cluster, query, std::nullopt})) {}
HttpLogFollowing::~HttpLogFollowing() = default;
Result<std::string> HttpLogFollowing::next() { return impl_->next(); }

}  // namespace rt::state
