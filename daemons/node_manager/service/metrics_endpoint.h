// GET /metrics of a node, for Prometheus. While nobody scrapes, nothing is computed and no thread
// exists.
//
// A scrape runs in the thread of its connection. It asks the node-manager and the object store
// over RPC like any client and reads /proc itself, so that the loop never waits for it. To be
// destroyed before the loop.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/net/address.h"
#include "common/net/loop.h"

namespace rt::tls {
class Tls;
}

namespace rt::node {

struct MetricsEndpointOptions {
  net::Address address;                   // where to listen, if there is no listen_fd
  int listen_fd = -1;                     // an inherited listening socket; -1: none
  std::string token;                      // required of clients; empty: none is required
  const tls::Tls* tls = nullptr;          // not owned; null: plain text
  std::string node_socket, store_socket;  // store_socket is empty on a node without a store
  std::string session_name, node_ip, node_id_hex, version;
  std::string log_directory;  // its file system is the disk reported
};

class MetricsEndpoint {
 public:
  // Fails if it cannot listen, for example because the port is in use.
  static Result<std::unique_ptr<MetricsEndpoint>> start(net::Loop& loop,
                                                        MetricsEndpointOptions options);
  ~MetricsEndpoint();
  int port() const;

 private:
  struct Impl;
  explicit MetricsEndpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::node
