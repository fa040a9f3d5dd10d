#include "common/rpc/server.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "common/base/log.h"
#include "common/net/sockets.h"
#include "common/proto/rpc.pb.h"
#include "common/rpc/arrival.h"
#include "common/rpc/connection_impl.h"
#include "common/rpc/hello.h"
#include "common/rpc/refusal.h"
#include "common/tls/stream.h"

namespace rt::rpc {

namespace {

// A newcomer is a connection whose hello has not been accepted. Its hello follows within a round
// trip, so this many at once are a whole cluster that reconnects, or strangers.
constexpr size_t kMaxNewcomers = 1024;
// Newcomers over TCP and over Unix sockets may each hold an eighth of the process's descriptors, so
// that strangers never hold more than a quarter. A reserve stays for the process's own files and
// sockets.
constexpr size_t kNewcomerShare = 8;
constexpr size_t kReserveShare = 8;
constexpr size_t kMaxReserve = 1024;
constexpr int64_t kDropLogIntervalUs = 1'000'000;

size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<int32_t>::max();
  return static_cast<size_t>(limit.rlim_cur);
}

// The role from a hello, fit for the log: a stranger may send anything, also text that would add
// lines to the log or fill it.
std::string shown_role(const std::string& role) {
  constexpr size_t kMostBytes = 32;
  const bool word = !role.empty() && role.size() <= kMostBytes &&
                    std::all_of(role.begin(), role.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || c == '-' || c == '_';
                    });
  return word ? role : "a peer";
}

}  // namespace

// A peer is first a newcomer, while its preamble and then its hello are awaited, and once admitted
// a connection. One time limit covers both stages of a newcomer. Newcomers are bounded apart from
// connections, and over TCP apart from Unix sockets: a peer that never introduces itself displaces
// only newcomers of its kind. The oldest is dropped first, because an honest newcomer is the
// quickest to be admitted.
struct Server::Impl {
  Impl(net::Loop& l, ServerOptions o)
      : loop(l), options(std::move(o)), descriptors(descriptor_limit()) {
    max_newcomers = std::clamp<size_t>(descriptors / kNewcomerShare, 1, kMaxNewcomers);
    size_t others = 2 * max_newcomers + std::min(descriptors / kReserveShare, kMaxReserve);
    max_admitted = std::min(static_cast<size_t>(std::max(options.max_connections, 1)),
                            descriptors > others ? descriptors - others : 1);
  }
  ~Impl();

  struct Newcomer {
    std::unique_ptr<Arrival> arrival;        // Null once the preamble has been read.
    std::shared_ptr<Connection> connection;  // Null before that; its own callbacks share it.
    net::Loop::TimerId timer;
    int64_t deadline_us;
  };
  using Newcomers = std::map<uint64_t, Newcomer>;  // By order of arrival.

  // Drops the oldest newcomer when there are too many.
  Newcomers::iterator add_newcomer(Newcomers& newcomers, int64_t deadline_us);
  void drop(Newcomer& newcomer, const char* why);
  Newcomers& newcomers_like(int fd) {
    return net::is_unix_socket(fd) ? unix_newcomers : tcp_newcomers;
  }
  Status prepare();  // Must be called before listening.
  void accept(int fd);
  void adopt(int fd);  // Takes a socket whose preamble another process has read.
  void on_preamble(Newcomers& newcomers, uint64_t id, Result<Preamble> preamble);
  void on_handoff(Newcomer from);
  void greet(Newcomers& newcomers, Newcomers::iterator it, int fd);
  std::unique_ptr<net::Stream> adopt_stream(int fd);
  void on_hello(Newcomers& newcomers, uint64_t id, const FrameHeader& header, Bytes message);
  void on_newcomer_gone(Newcomers& newcomers, uint64_t id, const Error& why);
  Status may_enter(const proto::Hello& hello, bool is_unix) const;
  void admit(Newcomer newcomer, const proto::Hello& hello);
  void forget(Connection* connection);

  net::Loop& loop;
  ServerOptions options;
  std::shared_ptr<const tls::Tls> tls;  // Null for plain text.
  const size_t descriptors;
  size_t max_newcomers, max_admitted;
  std::vector<std::unique_ptr<net::Listener>> listeners;
  // Newcomers over TCP, and over Unix sockets, which only this user can reach.
  Newcomers tcp_newcomers, unix_newcomers;
  uint64_t next_newcomer = 1;
  size_t dropped = 0;  // The newcomers that were dropped since the last log line about that.
  int64_t drop_log_due_us = 0;
  std::vector<std::shared_ptr<Connection>> connections;  // Shared with their users.
  std::unordered_map<Connection*, size_t> positions;     // The indexes in `connections`.
};

Server::Impl::~Impl() {
  listeners.clear();
  for (Newcomers* newcomers : {&tcp_newcomers, &unix_newcomers}) {
    for (auto& [id, newcomer] : *newcomers) drop(newcomer, "the server stops");
  }
  auto open = std::move(connections);
  connections.clear();
  positions.clear();
  for (auto& connection : open) connection->impl_->on_gone = nullptr;
  for (auto& connection : open)
    connection->close(make_error(Code::kUnavailable, "the server stops"));
}

void Server::Impl::drop(Newcomer& newcomer, const char* why) {
  loop.cancel(newcomer.timer);
  newcomer.arrival.reset();
  if (!newcomer.connection) return;
  Connection::Impl& impl = *newcomer.connection->impl_;
  impl.on_gone = nullptr;
  impl.on_lingered = nullptr;
  newcomer.connection->close(make_error(Code::kUnavailable, why));
  impl.end_linger();
}

Server::Impl::Newcomers::iterator Server::Impl::add_newcomer(Newcomers& newcomers,
                                                             int64_t deadline_us) {
  if (newcomers.size() >= max_newcomers) {
    ++dropped;
    if (loop.now_us() >= drop_log_due_us) {
      RT_WARN("dropped {} connections that had not introduced themselves yet: {} are the limit",
              dropped, max_newcomers);
      dropped = 0;
      drop_log_due_us = loop.now_us() + kDropLogIntervalUs;
    }
    auto oldest = newcomers.extract(newcomers.begin());
    drop(oldest.mapped(), "too many others arrive");
  }
  return newcomers.emplace_hint(newcomers.end(), next_newcomer++,
                                Newcomer{nullptr, nullptr, 0, deadline_us});
}

void Server::Impl::accept(int fd) {
  Newcomers& newcomers = newcomers_like(fd);
  auto it = add_newcomer(newcomers, loop.now_us() + options.hello_timeout_us);
  uint64_t id = it->first;
  it->second.timer = loop.run_after(options.hello_timeout_us, [this, &newcomers, id] {
    RT_WARN("closed a connection from {}: it did not introduce itself within {} ms",
            newcomers.at(id).arrival->peer_name(), options.hello_timeout_us / 1000);
    newcomers.erase(id);
  });
  it->second.arrival =
      std::make_unique<Arrival>(loop, fd, [this, &newcomers, id](Result<Preamble> preamble) {
        on_preamble(newcomers, id, std::move(preamble));
      });
}

void Server::Impl::on_preamble(Newcomers& newcomers, uint64_t id, Result<Preamble> preamble) {
  auto it = newcomers.find(id);
  loop.cancel(it->second.timer);
  auto arrived = std::move(it->second.arrival);  // Kept alive, because its callback is running.
  Arrival& arrival = *arrived;
  if (preamble && preamble->target == "self") return greet(newcomers, it, arrival.release_fd());
  Newcomer newcomer = std::move(it->second);
  newcomers.erase(it);
  newcomer.arrival = std::move(arrived);
  if (!preamble) {
    // A peer that only tests whether the port is open (rayctl, ray.init(), port scanners) closes
    // without a word, which deserves no warning.
    if (preamble.error().code == Code::kUnavailable) {
      RT_DEBUG("closed a connection from {}: {}", arrival.peer_name(), preamble.error().message);
      return;
    }
    RT_WARN("closed a connection from {}: {}", arrival.peer_name(), preamble.error().message);
    return;
  }
  bool local_only = preamble->target == "handoff" || preamble->target == "arena";
  if (local_only && !arrival.is_unix()) {
    RT_WARN("closed a connection from {}: preamble '{}' is for Unix sockets only",
            arrival.peer_name(), preamble->target);
    return refuse_socket(arrival.release_fd(),
                         make_error(Code::kProtocol, "preamble '" + preamble->target +
                                                         "' is for Unix sockets only"));
  }
  if (preamble->target == "handoff") return on_handoff(std::move(newcomer));
  bool is_unix = arrival.is_unix();
  int fd = arrival.release_fd();
  if (options.on_foreign && options.on_foreign(*preamble, fd, is_unix)) return;
  RT_WARN("closed a connection from {}: no process behind this address is '{} {}'",
          net::peer_name_of(fd), preamble->target, preamble->id);
  refuse_socket(
      fd,
      make_error(Code::kNotFound,
                 fmt::format("no '{}{}{}' behind this address: it ended, or lives on another node",
                             preamble->target, preamble->id.empty() ? "" : " ", preamble->id)));
}

void Server::Impl::on_handoff(Newcomer from) {
  Fd fd(from.arrival->release_passed_fd());
  struct stat info;
  int type = 0;
  socklen_t size = sizeof(type);
  bool is_stream = fd.valid() && ::fstat(fd.get(), &info) == 0 && S_ISSOCK(info.st_mode) &&
                   ::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                   type == SOCK_STREAM;
  if (!is_stream) {
    RT_WARN("a hand-off came without a connected socket");
    return;
  }
  adopt(fd.release());
}

void Server::Impl::adopt(int fd) {
  Newcomers& newcomers = newcomers_like(fd);
  greet(newcomers, add_newcomer(newcomers, loop.now_us() + options.hello_timeout_us), fd);
}

std::unique_ptr<net::Stream> Server::Impl::adopt_stream(int fd) {
  auto stream = loop.adopt(fd);
  if (stream->is_unix() || !tls) return stream;
  return tls::make_stream(
      loop, std::move(stream), tls->begin(RAY_TLS_SERVER), {.refuse = [](int refused) {
        RT_WARN("closed a connection from {}: it does not speak TLS", net::peer_name_of(refused));
        refuse_socket(refused, make_error(Code::kUnauthenticated,
                                          "this cluster speaks TLS: set RAY_USE_TLS=1 and the "
                                          "RAY_TLS_... variables as its nodes have them"));
      }});
}

void Server::Impl::greet(Newcomers& newcomers, Newcomers::iterator it, int fd) {
  uint64_t id = it->first;
  Newcomer& newcomer = it->second;
  newcomer.connection = Connection::Impl::make(loop, adopt_stream(fd));
  Connection::Impl& impl = *newcomer.connection->impl_;
  impl.on_greeting = [this, &newcomers, id](const FrameHeader& header, Bytes message) {
    on_hello(newcomers, id, header, message);
  };
  impl.on_gone = [this, &newcomers, id](const Error& why) { on_newcomer_gone(newcomers, id, why); };
  newcomer.timer = loop.run_after(
      std::max<int64_t>(0, newcomer.deadline_us - loop.now_us()), [this, &newcomers, id] {
        auto keep = newcomers.at(id).connection;
        RT_WARN("closed a connection from {}: no hello within {} ms", keep->impl_->peer.name,
                options.hello_timeout_us / 1000);
        keep->impl_->refuse(make_error(
            Code::kTimeout, fmt::format("no hello within {} ms", options.hello_timeout_us / 1000)));
      });
}

// A refused newcomer counts until its socket is closed, since it has a moment to read the reason.
void Server::Impl::on_newcomer_gone(Newcomers& newcomers, uint64_t id, const Error& why) {
  auto it = newcomers.find(id);
  if (it == newcomers.end()) return;
  Connection::Impl& impl = *it->second.connection->impl_;
  RT_DEBUG("a connection from {} ended before its hello: {}", impl.peer.name, why.message);
  loop.cancel(it->second.timer);
  if (impl.linger_timer == 0) {
    newcomers.erase(it);
  } else {
    impl.on_lingered = [&newcomers, id] { newcomers.erase(id); };
  }
}

Status Server::Impl::may_enter(const proto::Hello& hello, bool is_unix) const {
  RT_TRY(check_hello(options.identity, hello, is_unix));
  if (connections.size() < max_admitted) return {};
  return make_error(Code::kResourceExhausted,
                    fmt::format("{} connections are open here, which is the limit (max_connections "
                                "= {}, descriptors = {})",
                                connections.size(), options.max_connections, descriptors));
}

void Server::Impl::on_hello(Newcomers& newcomers, uint64_t id, const FrameHeader& header,
                            Bytes message) {
  auto it = newcomers.find(id);
  auto keep = it->second.connection;
  Connection::Impl& impl = *keep->impl_;
  proto::Hello hello;
  Status status;
  if (header.kind != FrameKind::kHello) {
    status = make_error(Code::kProtocol, "the first frame is not a hello");
  } else if (!hello.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    status = make_error(Code::kProtocol, "the hello cannot be parsed");
  } else {
    status = may_enter(hello, impl.peer.is_unix);
  }
  if (!status) {
    RT_WARN("refused {} {}: {}", shown_role(hello.role()), impl.peer.name, status.error().message);
    impl.refuse(status.error());
    return;
  }
  Newcomer newcomer = std::move(it->second);
  newcomers.erase(it);
  admit(std::move(newcomer), hello);
}

void Server::Impl::admit(Newcomer entry, const proto::Hello& hello) {
  loop.cancel(entry.timer);
  Connection* raw = entry.connection.get();
  Connection::Impl& impl = *raw->impl_;
  impl.peer.role = hello.role();
  impl.peer.id = hello.peer_id();
  impl.peer.cluster_id = hello.cluster_id();
  impl.peer.job_config = hello.job_config();
  impl.peer.build = hello.build();
  impl.on_gone = [this, raw](const Error&) { forget(raw); };
  positions[raw] = connections.size();
  connections.push_back(entry.connection);
  (void)impl.write_frame({.kind = FrameKind::kHelloReply}, make_hello_reply(options.identity), {});
  impl.accepted = true;
  // This comes last, because become_open() destroys the callback in which it runs.
  auto on_connection = options.on_connection;
  impl.become_open();
  if (on_connection) on_connection(entry.connection);
}

void Server::Impl::forget(Connection* connection) {
  auto it = positions.find(connection);
  if (it == positions.end()) return;
  size_t at = it->second;
  positions.erase(it);
  if (at + 1 != connections.size()) {
    connections[at] = std::move(connections.back());
    positions[connections[at].get()] = at;
  }
  connections.pop_back();
}

Server::Server(net::Loop& loop, ServerOptions options)
    : impl_(std::make_unique<Impl>(loop, std::move(options))) {}
Server::~Server() = default;

Status Server::Impl::prepare() {
  RT_ASSIGN(tls, tls::Tls::of_process());
  return {};
}

Status Server::listen(const net::Address& address) {
  RT_TRY(impl_->prepare());
  RT_ASSIGN(auto listener,
            impl_->loop.listen(address, [impl = impl_.get()](int fd) { impl->accept(fd); }));
  impl_->listeners.push_back(std::move(listener));
  return {};
}

Status Server::listen_fd(int fd) {
  RT_TRY(impl_->prepare());
  RT_ASSIGN(auto listener, impl_->loop.listen_fd(
                               fd, [impl = impl_.get()](int accepted) { impl->accept(accepted); }));
  impl_->listeners.push_back(std::move(listener));
  return {};
}

void Server::adopt(int fd) { impl_->adopt(fd); }
void Server::set_identity(Identity identity) { impl_->options.identity = std::move(identity); }
const Identity& Server::identity() const { return impl_->options.identity; }

int Server::port() const {
  for (const auto& listener : impl_->listeners) {
    net::Address address = listener->local_address();
    if (address.kind == net::Address::Kind::kTcp) return address.port;
  }
  return 0;
}

const std::vector<std::shared_ptr<Connection>>& Server::connections() const {
  return impl_->connections;
}

}  // namespace rt::rpc
