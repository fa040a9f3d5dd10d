// The head's HTTP interface: jobs, state, logs, cluster views. It asks the cluster over the same
// RPC as every client, from its own threads; nothing here runs in the head's loop but accepting
// connections.
#pragma once

#include <memory>
#include <string>

#include "common/http/server.h"
#include "common/state/query.h"

namespace rt::head {

// What routes know. Shared by threads, never changed.
struct ApiContext {
  state::Cluster cluster;  // this head, and its token
  std::string session_name, session_dir, cluster_id;
  int64_t start_time_ms = 0;     // since the epoch
  bool private_cluster = false;  // made by ray.init()
};
using ApiContextPtr = std::shared_ptr<const ApiContext>;

struct ApiOptions {
  std::string host = "127.0.0.1";
  int port = kAnyOfDefault;                                      // 0: any free one
  static constexpr int kDefaultPort = 8265, kAnyOfDefault = -1;  // 8265, or the next free one of 50
};

class Api {
 public:
  // Listens. kIo when the port is in use; nothing is left then.
  static Result<std::unique_ptr<Api>> start(net::Loop& loop, const ApiOptions& options,
                                            ApiContext context);
  // HOST:PORT
  const std::string& address() const { return address_; }

 private:
  Api(net::Loop& loop, ApiContext context);
  Status listen(const ApiOptions& options);

  http::Server server_;
  std::string address_;
};

}  // namespace rt::head
