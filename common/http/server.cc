#include "common/http/server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <optional>
#include <regex>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/http/access.h"
#include "common/http/connection.h"
#include "common/net/sockets.h"
#include "common/tls/channel.h"

namespace rt::http {
namespace {

// How long the destructor waits for handlers.
constexpr auto kEndPatience = std::chrono::milliseconds(200);
// Matching a path recurses. Paths up to this size fit into the smallest stack of a thread.
constexpr size_t kMaxPathBytes = 2048;
// The body of a request whose route needs no token, so that anybody may send it.
constexpr size_t kMaxOpenBodyBytes = 64 << 10;

struct Route {
  std::string method;
  std::regex pattern;
  Handler handler;
  Access access;
  WebSocketHandler conversation;
};

Refusal check_path(const Request& request) {
  return request.path.size() <= kMaxPathBytes ? Refusal{} : Refusal{414, "414: URI Too Long"};
}

// Runs code of a route. When that throws, logs why and returns it.
std::optional<std::string> failure_of(const Request& request, const std::function<void()>& work) {
  std::string why = "an unknown error";
  try {
    work();
    return std::nullopt;
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {}
  // As it was sent, because the decoded path may have several lines.
  RT_WARN("{} {}: {}", request.method, request.target.substr(0, request.target.find('?')), why);
  return why;
}

void answer_failure(Response& response, const std::string& why) {
  response.pieces = nullptr;
  text(response, 500, fmt::format("Internal error: {}", why));
}

}  // namespace

// The part of the server that the threads share; it lives until the last of them has ended.
struct Server::Impl : std::enable_shared_from_this<Impl> {
  explicit Impl(ServerOptions given) : options(std::move(given)) {}

  const ServerOptions options;
  std::vector<Route> routes;
  std::atomic<bool> ending{false};
  Sessions sessions;

  Mutex mutex;
  CondVar changed;
  struct Open {
    int fd;
    bool leaving = false;              // like the list, guarded by `mutex`
    std::atomic<bool> trusted{false};  // the peer has shown the token
  };
  // Sockets that have a thread. A socket leaves the list before it is closed.
  std::list<Open> open GUARDED_BY(mutex);
  // Accepted beyond max_connections: the newest is served next, the oldest is given up first.
  std::list<Fd> waiting GUARDED_BY(mutex);

  void accept(Fd fd);  // in the loop's thread
  // Says that there is no thread for the connection. Does not wait: what it writes fits into the
  // empty buffer of the socket.
  void refuse(Fd fd, const Error& why) const;
  // The thread of a connection: serves it, then connections that wait.
  void run(Fd fd, std::list<Open>::iterator place);
  void serve(Fd fd, std::list<Open>::iterator place);
  // Does the TLS handshake, if there is TLS. Takes `fd`; null when the connection is over.
  std::unique_ptr<net::Channel> greet(Fd& fd) const;
  // Finds the route and checks access. Null: the response refuses the request.
  const Route* admit(Call& call, bool websocket, std::atomic<bool>& trusted) const;
  // Fills the response to the request that the connection has read.
  void handle(Connection& connection, Call& call, std::atomic<bool>& trusted) const;
  // False when the connection ends.
  bool answer(Connection& connection, std::atomic<bool>& trusted) const;
  // Refuses the WebSocket that the request asks for, or serves it to its end.
  void converse(Connection& connection, std::atomic<bool>& trusted) const;
};

const Route* Server::Impl::admit(Call& call, bool websocket, std::atomic<bool>& trusted) const {
  const Request& request = call.request;
  const Route* route = nullptr;
  bool other_method = false;
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  for (const Route& candidate : routes) {
    std::smatch match;
    if (!std::regex_match(request.path, match, candidate.pattern)) continue;
    if (candidate.method != method || websocket != static_cast<bool>(candidate.conversation)) {
      other_method = true;
      continue;
    }
    route = &candidate;
    for (size_t i = 1; i < match.size(); ++i) call.parts.push_back(match[i].str());
    break;
  }
  Refusal refusal = check_browser(request, websocket);
  // Checked before a missing route is reported: a stranger is not told which paths exist.
  if (refusal.status == 0 && (!route || route->access == Access::kToken)) {
    refusal = check_token(request, options.token, sessions, steady_now_us() / 1'000'000);
    if (refusal.status == 0) trusted = true;
  }
  if (refusal.status == 0 && !route)
    refusal =
        other_method ? Refusal{405, "405: Method Not Allowed"} : Refusal{404, "404: Not Found"};
  if (refusal.status == 0) return route;
  text(call.response, refusal.status, refusal.text);
  return nullptr;
}

void Server::Impl::handle(Connection& connection, Call& call, std::atomic<bool>& trusted) const {
  const Request& request = call.request;
  const bool has_body = connection.brings_body();
  if (has_body && reads_only(request)) connection.leave_body();
  if (Refusal refusal = check_path(request); refusal.status != 0) {
    connection.leave_body();
    return text(call.response, refusal.status, refusal.text);
  }
  const Route* route = admit(call, false, trusted);
  if (!route) {
    if (has_body) connection.leave_body();
    return;
  }
  if (has_body && !reads_only(request)) {
    const size_t most = route->access == Access::kOpen
                            ? std::min(options.max_body_bytes, kMaxOpenBodyBytes)
                            : options.max_body_bytes;
    if (Refusal refusal = connection.read_body(most, &call.body); refusal.status != 0) {
      connection.leave_body();
      return text(call.response, refusal.status, refusal.text);
    }
  }
  route->handler(call);
}

bool Server::Impl::answer(Connection& connection, std::atomic<bool>& trusted) const {
  Response response;
  response.headers = {{"X-Content-Type-Options", "nosniff"},
                      {"X-Frame-Options", "DENY"},
                      {"Cache-Control", "no-store"}};
  Call call{connection.request(), response, connection};
  if (auto why = failure_of(call.request, [&] { handle(connection, call, trusted); }))
    answer_failure(response, *why);
  if (response.status >= 400 && response.body.empty() && !response.pieces)
    text(response, response.status,
         fmt::format("{}: {}", response.status, reason_of(response.status)));
  bool goes_on = false;
  // If it fails, a part of the answer is sent, so that the client sees it break off.
  (void)failure_of(call.request, [&] { goes_on = connection.answer(response); });
  return goes_on;
}

void Server::Impl::converse(Connection& connection, std::atomic<bool>& trusted) const {
  Response response;
  Call call{connection.request(), response, connection};
  const Route* route = nullptr;
  if (auto why = failure_of(call.request, [&] {
        if (Refusal refusal = check_path(call.request); refusal.status != 0) {
          text(response, refusal.status, refusal.text);
        } else if ((route = admit(call, true, trusted))) {
          route->handler(call);
        }
      }))
    answer_failure(response, *why);
  if (response.status != 200) return connection.refuse({response.status, response.body});
  auto socket = connection.become_websocket();
  if (!socket) {
    RT_DEBUG("{}: {}", call.request.path, socket.error().message);
    return;
  }
  if (failure_of(call.request, [&] { route->conversation(**socket, call); }))
    (*socket)->break_off();
  (*socket)->close();
}

void Server::Impl::accept(Fd fd) {
  MutexLock lock(mutex);
  const size_t most = static_cast<size_t>(options.max_connections);
  if (open.size() >= most) {
    // A connection that has not shown the token makes room for the new one; others are left alone.
    // The oldest goes first, because an honest client is the quickest to show the token.
    auto stranger = std::find_if(open.begin(), open.end(),
                                 [](const Open& one) { return !one.trusted && !one.leaving; });
    if (stranger != open.end()) {
      stranger->leaving = true;
      ::shutdown(stranger->fd, SHUT_RDWR);
    }
    // Bounds the descriptors that clients can make this process hold to twice max_connections.
    waiting.push_back(std::move(fd));
    if (waiting.size() > most) waiting.pop_front();
    return;
  }
  auto place = open.emplace(open.end(), fd.get());
  // Shared, because it stays here if there is no thread.
  auto socket = std::make_shared<Fd>(std::move(fd));
  auto thread = options.start_thread(
      [self = shared_from_this(), socket, place] { self->run(std::move(*socket), place); });
  if (thread) return thread->detach();
  open.erase(place);
  refuse(std::move(*socket), thread.error());
}

void Server::Impl::refuse(Fd fd, const Error& why) const {
  RT_WARN("a connection from {} is refused: {}", net::peer_name_of(fd.get()), why.message);
  // A client that speaks TLS would not understand it.
  if (options.tls) return;
  Connection(std::make_unique<net::Channel>(std::move(fd)), options.io_timeout_ms, ending)
      .refuse({503, fmt::format("503: {}", why.message)});
}

void Server::Impl::run(Fd fd, std::list<Open>::iterator place) {
  while (fd.valid()) {
    serve(std::move(fd), place);
    MutexLock lock(mutex);
    if (!waiting.empty() && !ending && open.size() < static_cast<size_t>(options.max_connections)) {
      fd = std::move(waiting.back());
      waiting.pop_back();
      place = open.emplace(open.end(), fd.get());
    }
  }
}

std::unique_ptr<net::Channel> Server::Impl::greet(Fd& fd) const {
  if (!options.tls) return std::make_unique<net::Channel>(std::move(fd));
  auto channel = tls::accept_channel(fd, *options.tls, options.idle_timeout_ms);
  if (channel) return std::move(*channel);
  RT_DEBUG("a connection from {}: {}", fd.valid() ? net::peer_name_of(fd.get()) : "a client",
           channel.error().message);
  if (channel.error().code == Code::kProtocol) {
    Connection plain(std::make_unique<net::Channel>(Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0))),
                     options.io_timeout_ms, ending);
    Refusal ignored;
    if (plain.read_head(options.idle_timeout_ms, &ignored) != Connection::Next::kNone)
      plain.refuse({400, "This port speaks HTTPS: use https:// instead of http://\n"});
  }
  return nullptr;
}

void Server::Impl::serve(Fd fd, std::list<Open>::iterator place) {
  std::optional<Connection> connection;
  struct Forget {
    Impl& impl;
    std::list<Open>::iterator place;
    ~Forget() {
      MutexLock lock(impl.mutex);
      impl.open.erase(place);
      impl.changed.notify_all();
    }
  } forget{*this, place};
  auto channel = greet(fd);
  if (!channel) return;
  connection.emplace(std::move(channel), options.io_timeout_ms, ending);
  while (!ending) {
    Refusal refusal;
    const auto next = connection->read_head(options.idle_timeout_ms, &refusal);
    if (next == Connection::Next::kNone) return;
    if (next == Connection::Next::kRefused) {
      connection->refuse(refusal);
      return connection->drain();
    }
    if (connection->asks_for_websocket()) return converse(*connection, place->trusted);
    if (!answer(*connection, place->trusted)) return;
  }
}

Server::Server(net::Loop& loop, ServerOptions options)
    : impl_(std::make_shared<Impl>(std::move(options))), loop_(loop) {}

Server::~Server() {
  listener_.reset();
  MutexLock lock(impl_->mutex);
  impl_->ending = true;
  impl_->waiting.clear();
  for (const Impl::Open& one : impl_->open) ::shutdown(one.fd, SHUT_RDWR);
  const auto deadline = CondVar::Clock::now() + kEndPatience;
  while (!impl_->open.empty() && impl_->changed.wait_until(impl_->mutex, deadline)) {}
}

void Server::on(const std::string& method, const std::string& pattern, Handler handler,
                Access access) {
  impl_->routes.push_back({method, std::regex(pattern), std::move(handler), access, nullptr});
}

void Server::on_websocket(const std::string& pattern, Handler check, WebSocketHandler handler) {
  impl_->routes.push_back(
      {"GET", std::regex(pattern), std::move(check), Access::kToken, std::move(handler)});
}

Status Server::listen_fd(int fd) {
  RT_ASSIGN(listener_,
            loop_.listen_fd(fd, [impl = impl_](int connected) { impl->accept(Fd(connected)); }));
  return {};
}

int Server::port() const { return listener_ ? listener_->local_address().port : 0; }

Sessions& Server::sessions() { return impl_->sessions; }

bool Server::speaks_tls() const { return impl_->options.tls != nullptr; }

}  // namespace rt::http
