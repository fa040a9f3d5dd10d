// HTTP/1.1 for daemons. Connections are accepted in the loop. Each open connection has a thread, so
// that an answer may wait for other processes; there is no thread while there is no connection. A
// connection for which no thread can be started is refused with 503.
// connection.h reads requests and writes answers; routing, access and limits are here.
//
// Handlers run in those threads, several at once. They share with the loop only what is documented
// as such, and what they capture must stay alive until the last handler has returned.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/http/message.h"
#include "common/http/sessions.h"
#include "common/net/loop.h"
#include "common/net/websocket.h"
#include "common/tls/tls.h"

namespace rt::http {

struct ServerOptions {
  std::string token;                    // empty: no token is demanded
  std::shared_ptr<const tls::Tls> tls;  // null: plain text
  // Open connections; as many again may wait. Connections that have not shown the token make room.
  int max_connections = 64;
  size_t max_body_bytes = 100u << 20;
  int64_t idle_timeout_ms = 15'000;  // between two requests of a connection
  int64_t io_timeout_ms = 30'000;    // for a peer that stops in the middle
  // Starts the thread of a connection.
  std::function<Result<std::thread>(std::function<void()>)> start_thread = rt::start_thread;
};

// Whether a route demands the token.
enum class Access { kToken, kOpen };

// One request that is handled. `parts` are the texts that the groups of the pattern of the route
// matched, decoded. `body` is the unpacked body of the request. `client` lives as long as the
// connection: for the handler and for what it gives to set_chunked_content_provider().
struct Call {
  const Request& request;
  Response& response;
  const Client& client;
  std::vector<std::string> parts = {};
  std::string body = {};

  // The value of a query parameter; `otherwise` when it is missing.
  std::string query(std::string_view name, const std::string& otherwise = "") const {
    return request.has_param(name) ? request.get_param_value(name) : otherwise;
  }
};
using Handler = std::function<void(Call&)>;
// Runs a conversation. The socket is closed when it returns.
using WebSocketHandler = std::function<void(net::WebSocket&, const Call&)>;

class Server {
 public:
  Server(net::Loop& loop, ServerOptions options);
  // Breaks every connection. Handlers that take longer than a moment go on in their threads.
  ~Server();
  Server(const Server&) = delete;

  // To be called before listen_fd(). `pattern` is a regular expression that must match the whole
  // path.
  void on(const std::string& method, const std::string& pattern, Handler handler,
          Access access = Access::kToken);
  // `check` decides about the conversation: it sets a status and an answer to refuse it, and leaves
  // the response alone to accept it.
  void on_websocket(const std::string& pattern, Handler check, WebSocketHandler handler);

  // Takes the listening descriptor.
  Status listen_fd(int fd);
  // The signed-in browsers. Any thread.
  Sessions& sessions();
  int port() const;
  bool speaks_tls() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // shared with the threads
  net::Loop& loop_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace rt::http
