// The functions of query.h, logs.h and train_runs.h over a cluster's HTTP interface, for clients
// that can reach only that. The answers are the same as over RPC. This is a library of its own, so
// that workers and daemons do not link an HTTP client. All calls block.
#pragma once

#include <memory>
#include <string>

#include "observability/state/logs.h"
#include "observability/state/query.h"

namespace rt::state {

// Whether `address` is a URL, http://HOST:PORT or https://HOST:PORT.
bool is_http(const std::string& address);
// Probes the server within 3 s, before a request whose answer may take longer. Returns kUnavailable
// if no HTTP server answers. An untrusted certificate counts as an answer. `verify` is as in
// http::set_trusted_certificates().
Status probe_http(const std::string& address, const std::string& verify = "");
// The error for a server's 401 or 403; `said` is the text of its answer.
Error token_refused(const std::string& address, const std::string& said);

// In all of the following, `cluster.head_address` is the URL of the HTTP interface.
Result<Answer> list_over_http(const Cluster& cluster, const Query& query);
Result<Answer> summarize_over_http(const Cluster& cluster, const Query& query);
Result<Answer> list_logs_over_http(const Cluster& cluster, const std::string& node_id,
                                   const std::string& node_ip, const std::string& glob,
                                   int64_t timeout_us);
Result<Answer> train_runs_over_http(const Cluster& cluster, int64_t timeout_us);
Result<Answer> train_metrics_over_http(const Cluster& cluster, const std::string& run_id,
                                       int64_t timeout_us);
// See look_at_ranks() in train_ranks.h.
Result<Answer> look_at_ranks_over_http(const Cluster& cluster, const std::string& run_id,
                                       double seconds, int64_t timeout_us);
// See train_profiles() and profile_train_run() in train_profiles.h.
Result<Answer> train_profiles_over_http(const Cluster& cluster, const std::string& run_id,
                                        int64_t timeout_us);
Result<Answer> profile_train_run_over_http(const Cluster& cluster, const std::string& run_id,
                                           const Json& request, int64_t timeout_us);
Status read_log_over_http(const Cluster& cluster, const LogQuery& query, const TakeLog& take);

// Follows a log by requesting one piece after the other. Each request names the position behind the
// last piece, so nothing is lost or repeated when the server was away in between.
class HttpLogFollowing {
 public:
  HttpLogFollowing(const Cluster& cluster, const LogQuery& query);
  ~HttpLogFollowing();
  // Returns the next piece, or an empty string if there is nothing new. Returns kUnavailable if the
  // server is away (the caller may try again), and kUnsupported if it cannot hand out pieces.
  Result<std::string> next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::state
