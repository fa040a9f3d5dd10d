// The head's HTTP interface: jobs, state, logs and views of the cluster. Its threads ask the
// cluster over RPC, as every client does; only the accepting of connections runs in the head's
// loop.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/net/loop.h"
#include "observability/state/query.h"

namespace rt::http {
class Server;
}

namespace rt::head {

// The facts that routes need. All threads share one instance, which never changes.
struct ApiContext {
  state::Cluster cluster;  // this head's address and token
  std::string session_name, session_dir, cluster_id;
  int64_t start_time_ms = 0;     // milliseconds since the epoch
  bool private_cluster = false;  // made by ray.init() without an address
};
using ApiContextPtr = std::shared_ptr<const ApiContext>;

struct ApiOptions {
  std::string host = "127.0.0.1";
  // 0 takes any free port, kAnyOfDefault takes 8265 or the next free one of the 50 ports from
  // there.
  int port = kAnyOfDefault;
  static constexpr int kDefaultPort = 8265, kAnyOfDefault = -1;
};

// Owns the HTTP server. `loop` must outlive it. The destructor stops listening and breaks open
// connections.
class Api {
 public:
  ~Api();
  // Starts to listen. Fails with kIo when the port is in use.
  static Result<std::unique_ptr<Api>> start(net::Loop& loop, const ApiOptions& options,
                                            ApiContext context);
  // Returns HOST:PORT, where HOST is the node's own ip if the server listens on all addresses.
  const std::string& address() const { return address_; }

 private:
  Api(net::Loop& loop, ApiContext context);
  Status listen(const ApiOptions& options);

  std::unique_ptr<http::Server> server_;
  std::string address_;
};

}  // namespace rt::head
