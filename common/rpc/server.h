// Accepts connections: reads the preamble, checks the hello, hands out Connections.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/rpc/connection.h"
#include "common/rpc/preamble.h"

namespace rt::rpc {

struct ServerOptions {
  Identity identity;  // ours: role, id, cluster, token demanded on TCP (Unix sockets: file modes
                      // guard them, no token asked)
  int64_t hello_timeout_us =
      10'000'000;  // a connection without preamble and hello by then is closed
  int max_connections =
      20'000;  // admitted ones; fewer when the process may not open so many descriptors
  // A new peer whose hello was accepted: add services and handlers here.
  std::function<void(const std::shared_ptr<Connection>&)> on_connection;
  // A preamble for someone else ("store", "worker", "arena"): take the descriptor (true) or leave
  // it to be refused (false). Its preamble has been read; nothing else has.
  std::function<bool(const Preamble&, int fd, bool is_unix)> on_foreign;
};

class Server {
 public:
  Server(net::Loop& loop, ServerOptions options);
  ~Server();  // closes listeners and the connections it still owns

  Status listen(const net::Address& address);
  Status listen_fd(int fd);  // takes it
  // A socket whose preamble someone else has read ("handoff"): goes on with the hello. Takes the
  // descriptor.
  void adopt(int fd);
  // Ours changed: a node-manager learns its cluster id when it registers.
  void set_identity(Identity identity);
  const Identity& identity() const;
  int port() const;  // of the first TCP listener, 0 if none
  const std::vector<std::shared_ptr<Connection>>& connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Passes an accepted TCP socket, preamble read, on to the process that listens on `unix_path`
// (which sees it through "handoff"). Never blocks: the hand-over runs on `loop`. Takes the
// descriptor.
void hand_off(net::Loop& loop, const std::string& unix_path, int fd,
              std::function<void(Status)> done);

}  // namespace rt::rpc
