// The same questions to a cluster's HTTP interface, for those who reach only that. The answers are
// those of RPC. A library of its own: no other process is to carry an HTTP client.
#pragma once

#include <memory>
#include <string>

#include "common/state/logs.h"
#include "common/state/query.h"

namespace rt::state {

// "http://HOST:PORT", also "https://...".
bool is_http(const std::string& address);
// Whether an HTTP server answers there, known within 3 s: asked before a question whose answer may
// take longer. kUnavailable: none does. `verify`: as http::trust() takes it.
Status knock(const std::string& address, const std::string& verify = "");
// A server's 401 or 403, for people. `said`: its text.
Error token_refused(const std::string& address, const std::string& said);

// `head_address` of the cluster is that of its HTTP interface.
Result<Answer> list_over_http(const Cluster& cluster, const Query& query);
Result<Answer> summarize_over_http(const Cluster& cluster, const Query& query);
Result<Answer> list_logs_over_http(const Cluster& cluster, const std::string& node_id,
                                   const std::string& node_ip, const std::string& glob,
                                   int64_t timeout_us);
Status read_log_over_http(const Cluster& cluster, const LogQuery& query, const TakeLog& take);

// A log that is followed in pieces, so that a server that was away is asked for what comes behind
// the last one.
class HttpLogFollowing {
 public:
  HttpLogFollowing(const Cluster& cluster, const LogQuery& query);
  ~HttpLogFollowing();
  // The next piece; empty: nothing more for now. kUnavailable: the server is away, ask again.
  // kUnsupported: it has no pieces.
  Result<std::string> next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::state
