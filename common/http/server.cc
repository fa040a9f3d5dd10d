#include "common/http/server.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <condition_variable>
#include <list>
#include <mutex>
#include <regex>
#include <thread>

#include "common/base/log.h"
#include "common/http/access.h"
#include "common/http/stream.h"
#include "common/net/sockets.h"
#include "common/tls/channel.h"

namespace rt::http {
namespace {

constexpr auto kEndPatience = std::chrono::milliseconds(200);
// cpp-httplib gives handlers nothing of ours but the request's headers.
thread_local const std::atomic<bool>* t_ending = nullptr;
thread_local SocketStream* t_stream = nullptr;

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

std::string decoded(const std::string& text) { return httplib::detail::decode_url(text, false); }

}  // namespace

void text(Response& response, int status, const std::string& body) {
  response.status = status;
  response.set_content(body, "text/plain; charset=utf-8");
}

void json(Response& response, int status, const std::string& body) {
  response.status = status;
  response.set_content(body, "application/json; charset=utf-8");
}

// The part of it that threads use; lives until the last of them has ended.
struct Server::Impl : httplib::Server, std::enable_shared_from_this<Impl> {
  explicit Impl(ServerOptions given) : options(std::move(given)) {}

  using httplib::Server::svr_sock_;

  ServerOptions options;
  std::vector<Route> routes;
  std::atomic<bool> ending{false};

  std::mutex mutex;
  std::condition_variable changed;
  std::list<int> open;                // sockets with a thread
  std::list<Fd> waiting;              // accepted beyond max_connections

  void set_up();
  void accept(Fd fd);                 // the loop's thread
  void run(Fd fd);                    // its thread: this connection, then those that wait
  void serve(Fd fd);
  std::unique_ptr<net::Channel> greet(Fd fd) const;   // null: it is over
  // False: it was refused. Fills `parts` of the call and the route.
  bool admit(const Request& request, Response& response, bool websocket, const Route** route, std::vector<std::string>* parts) const;
  void answer(const Request& request, Response& response);
  bool converse(SocketStream& stream);
};

void Server::Impl::set_up() {
  set_payload_max_length(options.max_body_bytes);
  set_keep_alive_max_count(1 << 20);
  svr_sock_ = 0;      // not listening itself counts as ending: no answer would go on
  auto all = [this](const Request& request, Response& response) { answer(request, response); };
  Get(".*", all);
  Post(".*", all);
  Put(".*", all);
  Delete(".*", all);
  Patch(".*", all);
  Options(".*", all);
  set_exception_handler([](const Request& request, Response& response, std::exception_ptr error) {
    std::string why = "an unknown error";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      why = e.what();
    } catch (...) {
    }
    RT_WARN("{} {}: {}", request.method, request.path, why);
    text(response, 500, "Internal error: " + why);
  });
  // What never reached a handler: too long, malformed.
  set_error_handler([](const Request&, Response& response) {
    if (!response.body.empty() || response.status < 400) return;
    text(response, response.status, fmt::format("{}: {}", response.status, reason(response.status)));
  });
}

bool Server::Impl::admit(const Request& request, Response& response, bool websocket, const Route** route, std::vector<std::string>* parts) const {
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
  Refusal refusal = check_browser(request);
  // A stranger is not told which paths exist.
  if (refusal.status == 0 && (!*route || (*route)->access == Access::kToken)) refusal = check_token(request, options.token);
  if (refusal.status == 0 && !*route) refusal = other_method ? Refusal{405, "405: Method Not Allowed"} : Refusal{404, "404: Not Found"};
  if (refusal.status == 0) return true;
  text(response, refusal.status, refusal.text);
  return false;
}

void Server::Impl::answer(const Request& request, Response& response) {
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("Cache-Control", "no-store");
  const Route* route;
  std::vector<std::string> parts;
  if (!admit(request, response, false, &route, &parts)) return;
  response.status = 200;
  Call call{request, response, std::move(parts)};
  route->handler(call);
}

void Server::Impl::accept(Fd fd) {
  std::lock_guard lock(mutex);
  if (open.size() >= static_cast<size_t>(options.max_connections)) {
    // Nobody can make us keep more descriptors than twice the limit.
    if (waiting.size() < static_cast<size_t>(options.max_connections)) waiting.push_back(std::move(fd));
    return;
  }
  open.push_back(fd.get());
  std::thread([self = shared_from_this(), fd = std::move(fd)]() mutable { self->run(std::move(fd)); }).detach();
}

void Server::Impl::run(Fd fd) {
  t_ending = &ending;
  while (fd.valid()) {
    int number = fd.get();
    serve(std::move(fd));
    std::lock_guard lock(mutex);
    open.remove(number);
    if (!waiting.empty() && !ending) {
      fd = std::move(waiting.front());
      waiting.pop_front();
      open.push_back(fd.get());
    }
  }
  std::lock_guard lock(mutex);
  changed.notify_all();
}

std::unique_ptr<net::Channel> Server::Impl::greet(Fd fd) const {
  if (!options.tls) return std::make_unique<net::Channel>(std::move(fd));
  auto channel = tls::accept_channel(fd, *options.tls, options.idle_timeout_ms);
  if (channel) return std::move(*channel);
  RT_DEBUG("a connection from {}: {}", fd.valid() ? net::peer_name_of(fd.get()) : "a client", channel.error().message);
  if (channel.error().code == Code::kProtocol) {
    SocketStream plain(std::make_unique<net::Channel>(std::move(fd)), options.io_timeout_ms);
    constexpr std::string_view body = "This port speaks HTTPS: use https:// instead of http://\n";
    std::string answer = fmt::format("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
    if (plain.read_head(options.idle_timeout_ms) == SocketStream::Head::kRead) plain.write(answer.data(), answer.size());
  }
  return nullptr;
}

void Server::Impl::serve(Fd fd) {
  auto channel = greet(std::move(fd));
  if (!channel) return;
  SocketStream stream(std::move(channel), options.io_timeout_ms);
  t_stream = &stream;
  struct Forget {
    ~Forget() { t_stream = nullptr; }
  } forget;
  while (!ending) {
    SocketStream::Head head = stream.read_head(options.idle_timeout_ms);
    if (head == SocketStream::Head::kTooLarge) {
      constexpr std::string_view answer = "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
      stream.write(answer.data(), answer.size());
    }
    if (head != SocketStream::Head::kRead || converse(stream)) return;
    bool closed = false;
    if (!process_request(stream, ending, closed, nullptr) || closed) return;
  }
}

// True: it was, or was meant to be, a WebSocket, and is over.
bool Server::Impl::converse(SocketStream& stream) {
  Request request;
  if (!net::WebSocket::is_upgrade(stream.buffered().substr(0, stream.head_bytes()), &request.method, &request.target, [&](std::string name, std::string value) {
        request.headers.emplace(std::move(name), std::move(value));
      })) {
    return false;
  }
  size_t question = request.target.find('?');
  request.path = decoded(request.target.substr(0, question));
  if (question != std::string::npos) httplib::detail::parse_query_text(request.target.substr(question + 1), request.params);
  Response response;
  const Route* route;
  std::vector<std::string> parts;
  bool admitted = admit(request, response, true, &route, &parts);
  Call call{request, response, std::move(parts)};
  if (admitted) route->handler(call);
  if (response.status > 0 && response.status != 200) {
    std::string answer = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}", response.status,
                                     reason(response.status), response.body.size(), response.body);
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

Server::Server(net::Loop& loop, ServerOptions options) : impl_(std::make_shared<Impl>(std::move(options))), loop_(loop) { impl_->set_up(); }

Server::~Server() {
  listener_.reset();
  std::unique_lock lock(impl_->mutex);
  impl_->ending = true;
  impl_->svr_sock_ = INVALID_SOCKET;
  impl_->waiting.clear();
  for (int fd : impl_->open) ::shutdown(fd, SHUT_RDWR);
  impl_->changed.wait_for(lock, kEndPatience, [this] { return impl_->open.empty(); });
}

void Server::on(const std::string& method, const std::string& pattern, Handler handler, Access access) {
  impl_->routes.push_back({method, std::regex(pattern), std::move(handler), access, nullptr});
}

void Server::on_websocket(const std::string& pattern, Handler check, WebSocketHandler handler) {
  impl_->routes.push_back({"GET", std::regex(pattern), std::move(check), Access::kToken, std::move(handler)});
}

Status Server::listen_fd(int fd) {
  RT_ASSIGN(listener_, loop_.listen_fd(fd, [impl = impl_](int connected) { impl->accept(Fd(connected)); }));
  return {};
}

int Server::port() const { return listener_ ? listener_->local_address().port : 0; }

bool Server::speaks_tls() const { return impl_->options.tls != nullptr; }

bool Server::ending() { return t_ending && *t_ending; }
bool Server::client_gone() { return t_stream && t_stream->peer_closed(); }

}  // namespace rt::http
