#include "common/http/server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <optional>
#include <regex>
#include <thread>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/percent.h"
#include "common/http/access.h"
#include "common/http/body.h"
#include "common/http/head.h"
#include "common/http/stream.h"
#include "common/net/sockets.h"
#include "common/tls/channel.h"

namespace rt::http {
namespace {

// How long the destructor waits for handlers.
constexpr auto kEndPatience = std::chrono::milliseconds(200);
// Matching a path recurses, here and in cpp-httplib. Paths up to this size fit into the smallest
// stack of a thread.
constexpr size_t kMaxPathBytes = 2048;
constexpr int64_t kDrainMs = 5000;
// The connection that a thread serves. cpp-httplib passes nothing of the kind to handlers.
thread_local const std::atomic<bool>* t_ending = nullptr;
thread_local SocketStream* t_stream = nullptr;
thread_local std::atomic<bool>* t_trusted = nullptr;

struct Route {
  std::string method;
  std::regex pattern;
  Handler handler;
  Access access;
  WebSocketHandler conversation;
};

const char* reason(int status) {
  switch (status) {
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Payload Too Large";
    case 414: return "URI Too Long";
    default: return status < 500 ? "Refused" : "Internal Server Error";
  }
}

// An answer after which the connection ends.
std::string last_answer(int status, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: "
      "close\r\nContent-Length: {}\r\n\r\n{}",
      status, reason(status), body.size(), body);
}

Refusal check_path(const Request& request) {
  return request.path.size() <= kMaxPathBytes ? Refusal{} : Refusal{414, "414: URI Too Long"};
}

// Leaves the body unread, which means that the connection must end after the answer.
void leave_body_and_close(Response& response) {
  if (t_stream->given_up()) return;
  response.set_header("Connection", "close");
  t_stream->give_up();
}

}  // namespace

void text(Response& response, int status, const std::string& body) {
  response.status = status;
  response.set_content(body, "text/plain; charset=utf-8");
}

void json(Response& response, int status, const std::string& body) {
  response.status = status;
  response.set_content(body, "application/json; charset=utf-8");
}

// The part of the server that the threads share; it lives until the last of them has ended.
struct Server::Impl : httplib::Server, std::enable_shared_from_this<Impl> {
  explicit Impl(ServerOptions given) : options(std::move(given)) {}

  using httplib::Server::svr_sock_;

  ServerOptions options;
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

  void set_up();
  void accept(Fd fd);  // in the loop's thread
  // The thread of a connection: serves it, then connections that wait.
  void run(Fd fd, std::list<Open>::iterator place);
  void serve(Fd fd, std::list<Open>::iterator place);
  // Does the TLS handshake, if there is TLS. Takes `fd`; null when the connection is over.
  std::unique_ptr<net::Channel> greet(Fd& fd) const;
  // Finds the route and checks access. False: the response refuses the request.
  bool admit(const Request& request, Response& response, bool websocket, const Route** route,
             std::vector<std::string>* parts) const;
  void answer(const Request& request, Response& response, const httplib::ContentReader* reader);
  // True when the request asked for a WebSocket: it was served or refused, and the connection ends.
  bool serve_websocket(SocketStream& stream);
};

void Server::Impl::set_up() {
  set_payload_max_length(options.max_body_bytes);
  set_keep_alive_max_count(1 << 20);
  // cpp-httplib takes a server without a listening socket for one that is ending, and would break
  // off answers that it sends in pieces.
  svr_sock_ = 0;
  auto bare = [this](const Request& request, Response& response) {
    answer(request, response, nullptr);
  };
  auto whole = [this](const Request& request, Response& response,
                      const httplib::ContentReader& reader) { answer(request, response, &reader); };
  Get(".*", bare);
  Options(".*", bare);
  Post(".*", whole);
  Put(".*", whole);
  Delete(".*", whole);
  Patch(".*", whole);
  set_pre_routing_handler([](const Request& request, Response& response) {
    const Refusal refusal = check_path(request);
    if (refusal.status == 0) return HandlerResponse::Unhandled;
    leave_body_and_close(response);
    text(response, refusal.status, refusal.text);
    return HandlerResponse::Handled;
  });
  set_post_routing_handler([](const Request&, Response& response) {
    if (response.get_header_value("Connection") == "close") response.headers.erase("Keep-Alive");
  });
  set_exception_handler([](const Request& request, Response& response, std::exception_ptr error) {
    std::string why = "an unknown error";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      why = e.what();
    } catch (...) {}
    RT_WARN("{} {}: {}", request.method, request.path, why);
    text(response, 500, "Internal error: " + why);
  });
  // Gives a body to the answers of requests that never reached a handler, being too long or
  // malformed.
  set_error_handler([](const Request&, Response& response) {
    if (!response.body.empty() || response.status < 400) return;
    text(response, response.status,
         fmt::format("{}: {}", response.status, reason(response.status)));
  });
}

bool Server::Impl::admit(const Request& request, Response& response, bool websocket,
                         const Route** route, std::vector<std::string>* parts) const {
  *route = nullptr;
  bool other_method = false;
  std::string method = request.method == "HEAD" ? "GET" : request.method;
  for (const Route& candidate : routes) {
    std::smatch match;
    if (!std::regex_match(request.path, match, candidate.pattern)) continue;
    if (candidate.method != method || websocket != static_cast<bool>(candidate.conversation)) {
      other_method = true;
      continue;
    }
    *route = &candidate;
    for (size_t i = 1; i < match.size(); ++i) parts->push_back(match[i].str());
    break;
  }
  Refusal refusal = check_browser(request, websocket);
  // Checked before a missing route is reported: a stranger is not told which paths exist.
  if (refusal.status == 0 && (!*route || (*route)->access == Access::kToken)) {
    refusal = check_token(request, options.token, sessions, steady_now_us() / 1'000'000);
    if (refusal.status == 0) *t_trusted = true;
  }
  if (refusal.status == 0 && !*route)
    refusal =
        other_method ? Refusal{405, "405: Method Not Allowed"} : Refusal{404, "404: Not Found"};
  if (refusal.status == 0) return true;
  text(response, refusal.status, refusal.text);
  return false;
}

void Server::Impl::answer(const Request& request, Response& response,
                          const httplib::ContentReader* reader) {
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("Cache-Control", "no-store");
  const bool has_body = brings_body(request);
  if (has_body && !reader) leave_body_and_close(response);
  const Route* route;
  Call call{request, response, {}, {}};
  if (!admit(request, response, false, &route, &call.parts)) {
    if (has_body) leave_body_and_close(response);
    return;
  }
  if (reader) {
    if (Refusal refusal = read_body(request, *reader, options.max_body_bytes, &call.body);
        refusal.status != 0) {
      leave_body_and_close(response);
      return text(response, refusal.status, refusal.text);
    }
  }
  response.status = 200;
  route->handler(call);
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
  std::thread([self = shared_from_this(), fd = std::move(fd), place]() mutable {
    self->run(std::move(fd), place);
  }).detach();
}

void Server::Impl::run(Fd fd, std::list<Open>::iterator place) {
  t_ending = &ending;
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
    SocketStream plain(std::make_unique<net::Channel>(Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0))),
                       options.io_timeout_ms);
    constexpr std::string_view body = "This port speaks HTTPS: use https:// instead of http://\n";
    const std::string answer = last_answer(400, body);
    if (plain.read_head(options.idle_timeout_ms) == SocketStream::Head::kRead)
      plain.write(answer.data(), answer.size());
  }
  return nullptr;
}

void Server::Impl::serve(Fd fd, std::list<Open>::iterator place) {
  std::optional<SocketStream> spoken;
  struct Forget {
    Impl& impl;
    std::list<Open>::iterator place;
    ~Forget() {
      t_stream = nullptr;
      t_trusted = nullptr;
      MutexLock lock(impl.mutex);
      impl.open.erase(place);
      impl.changed.notify_all();
    }
  } forget{*this, place};
  t_trusted = &place->trusted;
  auto channel = greet(fd);
  if (!channel) return;
  SocketStream& stream = spoken.emplace(std::move(channel), options.io_timeout_ms);
  t_stream = &stream;
  while (!ending) {
    SocketStream::Head head = stream.read_head(options.idle_timeout_ms);
    if (head == SocketStream::Head::kTooLarge) {
      constexpr std::string_view answer =
          "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: "
          "0\r\n\r\n";
      stream.write(answer.data(), answer.size());
    }
    if (head != SocketStream::Head::kRead) return;
    if (Refusal refusal = check_head(stream.head()); refusal.status != 0) {
      const std::string answer = last_answer(refusal.status, refusal.text);
      stream.write(answer.data(), answer.size());
      return stream.drain(kDrainMs);
    }
    if (serve_websocket(stream)) return;
    // Range is ignored, as RFC 9110 allows: cpp-httplib would match it by recursion, and repeat the
    // answer once for each range.
    stream.drop_field("range");
    bool closed = false;
    if (!process_request(stream, ending, closed, nullptr)) return;
    if (stream.given_up()) return stream.drain(kDrainMs);
    if (closed) return;
  }
}

bool Server::Impl::serve_websocket(SocketStream& stream) {
  Request request;
  if (!net::WebSocket::is_upgrade(std::string(stream.head()), &request.method, &request.target,
                                  [&](std::string name, std::string value) {
                                    request.headers.emplace(std::move(name), std::move(value));
                                  })) {
    return false;
  }
  size_t question = request.target.find('?');
  request.path = percent_decoded(request.target.substr(0, question));
  if (question != std::string::npos) {
    for (auto& pair : query_pairs(request.target.substr(question + 1)))
      request.params.insert(std::move(pair));
  }
  Response response;
  const Route* route;
  Call call{request, response, {}, {}};
  if (Refusal refusal = check_path(request); refusal.status != 0) {
    text(response, refusal.status, refusal.text);
  } else if (admit(request, response, true, &route, &call.parts)) {
    route->handler(call);
  }
  if (response.status > 0 && response.status != 200) {
    const std::string answer = last_answer(response.status, response.body);
    stream.write(answer.data(), answer.size());
    return true;
  }
  std::string rest;
  auto channel = stream.release(&rest);
  auto socket = net::WebSocket::accept(std::move(channel), rest, options.io_timeout_ms);
  if (!socket) {
    RT_DEBUG("{}: {}", request.path, socket.error().message);
    return true;
  }
  route->conversation(**socket, call);
  (*socket)->close();
  return true;
}

Server::Server(net::Loop& loop, ServerOptions options)
    : impl_(std::make_shared<Impl>(std::move(options))), loop_(loop) {
  impl_->set_up();
}

Server::~Server() {
  listener_.reset();
  MutexLock lock(impl_->mutex);
  impl_->ending = true;
  impl_->svr_sock_ = INVALID_SOCKET;
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

bool Server::ending() { return t_ending && *t_ending; }
bool Server::client_gone() { return t_stream && t_stream->peer_closed(); }

}  // namespace rt::http
