// HTTP/1.1 for daemons. Connections are accepted in the loop; each that is open has a thread, so
// that an answer may wait for other processes, and no thread exists while nobody asks. cpp-httplib
// reads requests and writes answers; routing, access and limits are here.
//
// Handlers run in those threads, several at once: they share nothing with the loop but what says
// so, and what they capture stays alive until the last has returned.
#pragma once

#include <httplib.h>

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/http/sessions.h"
#include "common/net/loop.h"
#include "common/net/websocket.h"
#include "common/tls/tls.h"

namespace rt::http {

using httplib::Request;
using httplib::Response;

struct ServerOptions {
  std::string token;                    // empty: everybody may ask
  std::shared_ptr<const tls::Tls> tls;  // null: plain text
  int max_connections = 64;             // as many wait; strangers make room
  size_t max_body_bytes = 100u << 20;
  int64_t idle_timeout_ms = 15'000;  // between two requests of a connection
  int64_t io_timeout_ms = 30'000;    // for a peer that stops in the middle
};

enum class Access { kToken, kOpen };

// `parts`: what the groups of the route's pattern matched, decoded. `body`: what came with the
// request, unpacked (its own `body` stays empty).
struct Call {
  const Request& request;
  Response& response;
  std::vector<std::string> parts;
  std::string body;

  // A query parameter; `otherwise` when it is missing.
  std::string query(const std::string& name, const std::string& otherwise = "") const {
    return request.has_param(name.c_str()) ? request.get_param_value(name.c_str()) : otherwise;
  }
};
using Handler = std::function<void(Call&)>;
// Returns when the conversation is over; the socket is closed then.
using WebSocketHandler = std::function<void(net::WebSocket&, const Call&)>;

class Server {
 public:
  Server(net::Loop& loop, ServerOptions options);
  ~Server();  // breaks every connection; handlers that take longer than a moment are left behind
  Server(const Server&) = delete;

  // Before listen_fd(). `pattern` is a regular expression for the whole path.
  void on(const std::string& method, const std::string& pattern, Handler handler,
          Access access = Access::kToken);
  // `check` answers like a handler when the conversation is refused (status set), and leaves the
  // response alone when it may begin.
  void on_websocket(const std::string& pattern, Handler check, WebSocketHandler handler);

  // Takes the listening descriptor.
  Status listen_fd(int fd);
  // Signed-in browsers; from any thread.
  Sessions& sessions();
  int port() const;
  bool speaks_tls() const;
  // True once the server ends: for handlers that go on for long, in their threads.
  static bool ending();
  // Likewise: the client whose question this thread answers has gone.
  static bool client_gone();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with the threads
  net::Loop& loop_;
  std::unique_ptr<net::Listener> listener_;
};

// ---- answers

void text(Response& response, int status, const std::string& body);
void json(Response& response, int status, const std::string& body);

}  // namespace rt::http
