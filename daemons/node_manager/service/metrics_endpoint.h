// GET /metrics of a node, for Prometheus. Nothing is computed, and no thread exists, while nobody
// asks.
//
// A scrape runs in its connection's thread: it asks the node-manager and the object store over RPC
// like any client, and reads /proc itself, so that the loop never waits for it. Lifecycle: ends
// with the node-manager's loop still there.
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
  net::Address address;                   // unless listen_fd
  int listen_fd = -1;                     // inherited
  std::string token;                      // empty: everybody may ask
  const tls::Tls* tls = nullptr;          // null: plain text; that of the process
  std::string node_socket, store_socket;  // store_socket empty: a node without one
  std::string session_name, node_ip, node_id_hex, version;
  std::string log_directory;  // on the disk that counts
};

class MetricsEndpoint {
 public:
  // kIo: the port is in use.
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
