// Accepts connections: reads the preamble, checks the hello, hands out Connections. All methods and
// callbacks run in the thread of the loop.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/rpc/connection.h"
#include "common/rpc/preamble.h"

namespace rt::rpc {

struct ServerOptions {
  // The identity for the hello replies of this process. The token is demanded on TCP only; Unix
  // sockets are guarded by their file mode.
  Identity identity;
  // A connection whose preamble and hello have not come within this time is closed.
  int64_t hello_timeout_us = 10'000'000;
  // Limit of admitted connections; lower when the process may not open so many descriptors.
  int max_connections = 20'000;
  // Called with each peer whose hello was accepted: add services and handlers here.
  std::function<void(const std::shared_ptr<Connection>&)> on_connection;
  // Called when a preamble names another process ("store", "worker") or the "arena". Return true to
  // take the descriptor, from which only the preamble has been read; false refuses the connection.
  std::function<bool(const Preamble&, int fd, bool is_unix)> on_foreign;
};

class Server {
 public:
  Server(net::Loop& loop, ServerOptions options);
  // Closes the listeners and the connections.
  ~Server();

  // Fails with kIo when the address is in use or not permitted, or with the error of the TLS
  // configuration.
  Status listen(const net::Address& address);
  Status listen_fd(int fd);  // Takes the listening descriptor.
  // Goes on with the hello on a socket whose preamble another process has read and handed off.
  // The server owns the descriptor from here on.
  void adopt(int fd);
  // Replaces the identity for hellos to come: a node-manager learns its cluster id when it
  // registers.
  void set_identity(Identity identity);
  const Identity& identity() const;
  int port() const;  // The port of the first TCP listener, or 0 without one.
  const std::vector<std::shared_ptr<Connection>>& connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Passes an accepted TCP socket, whose preamble has been read, on to the process that listens on
// `unix_path`; the preamble "handoff" tells it so. Never blocks: the hand-off runs on `loop`.
// Takes the descriptor. When it fails, the peer gets an error frame, and `done` (if any) the error.
void hand_off(net::Loop& loop, const std::string& unix_path, int fd,
              std::function<void(Status)> done);

}  // namespace rt::rpc
