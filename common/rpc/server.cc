#include "common/rpc/server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unordered_map>

#include "common/base/log.h"
#include "common/net/sockets.h"
#include "common/proto/rpc.pb.h"
#include "common/rpc/arrival.h"
#include "common/rpc/connection_impl.h"
#include "common/rpc/hello.h"
#include "common/rpc/refusal.h"

namespace rt::rpc {

// A peer is an arrival (preamble being read), then greeted (hello expected), then a connection. One time limit covers both first stages.
struct Server::Impl {
  Impl(net::Loop& l, ServerOptions o) : loop(l), options(std::move(o)) {}
  ~Impl();

  struct Arriving {
    std::unique_ptr<Arrival> arrival;
    net::Loop::TimerId timer;
    int64_t deadline_us;
  };
  struct Greeted {
    std::shared_ptr<Connection> connection;   // shared with the connection's own callbacks
    net::Loop::TimerId timer;
  };

  void accept(int fd);
  void on_preamble(uint64_t id, Result<Preamble> preamble);
  void on_handoff(Arriving arriving);
  void greet(int fd, int64_t deadline_us);
  void on_hello(Connection* connection, const FrameHeader& header, Bytes message);
  void admit(Greeted greeted, const proto::Hello& hello);
  void forget(Connection* connection);
  size_t load() const { return arriving.size() + greeted.size() + connections.size(); }

  net::Loop& loop;
  ServerOptions options;
  std::vector<std::unique_ptr<net::Listener>> listeners;
  std::unordered_map<uint64_t, Arriving> arriving;
  uint64_t next_arrival = 1;
  std::unordered_map<Connection*, Greeted> greeted;
  std::vector<std::shared_ptr<Connection>> connections;   // shared with whoever calls over them
  std::unordered_map<Connection*, size_t> positions;      // in `connections`
};

Server::Impl::~Impl() {
  listeners.clear();
  for (auto& [id, entry] : arriving) loop.cancel(entry.timer);
  auto unfinished = std::move(greeted);
  greeted.clear();
  for (auto& [raw, entry] : unfinished) {
    loop.cancel(entry.timer);
    raw->impl_->on_gone = nullptr;
    raw->close(make_error(Code::kUnavailable, "the server stops"));
  }
  auto open = std::move(connections);
  connections.clear();
  positions.clear();
  for (auto& connection : open) connection->impl_->on_gone = nullptr;
  for (auto& connection : open) connection->close(make_error(Code::kUnavailable, "the server stops"));
}

void Server::Impl::accept(int fd) {
  if (load() >= static_cast<size_t>(options.max_connections)) {
    std::string name = net::peer_name_of(fd);
    RT_WARN("refused a connection from {}: {} are open, the limit is max_connections = {}", name, load(), options.max_connections);
    refuse_socket(fd, make_error(Code::kResourceExhausted, fmt::format("{} connections are open here, which is the limit (max_connections)", load())));
    return;
  }
  uint64_t id = next_arrival++;
  Arriving entry;
  entry.deadline_us = loop.now_us() + options.hello_timeout_us;
  entry.timer = loop.run_after(options.hello_timeout_us, [this, id] {
    RT_WARN("closed a connection from {}: it did not introduce itself within {} ms", arriving.at(id).arrival->peer_name(), options.hello_timeout_us / 1000);
    arriving.erase(id);
  });
  entry.arrival = std::make_unique<Arrival>(loop, fd, [this, id](Result<Preamble> preamble) { on_preamble(id, std::move(preamble)); });
  arriving.emplace(id, std::move(entry));
}

void Server::Impl::on_preamble(uint64_t id, Result<Preamble> preamble) {
  auto node = arriving.extract(id);
  Arriving entry = std::move(node.mapped());
  Arrival& arrival = *entry.arrival;
  loop.cancel(entry.timer);
  if (!preamble) {
    // Whoever only looks whether somebody listens (rayctl, ray.init(), port scanners) leaves without a word.
    if (preamble.error().code == Code::kUnavailable) {
      RT_DEBUG("closed a connection from {}: {}", arrival.peer_name(), preamble.error().message);
      return;
    }
    RT_WARN("closed a connection from {}: {}", arrival.peer_name(), preamble.error().message);
    return;
  }
  if (preamble->target == "self") return greet(arrival.release_fd(), entry.deadline_us);
  bool local_only = preamble->target == "handoff" || preamble->target == "arena";
  if (local_only && !arrival.is_unix()) {
    RT_WARN("closed a connection from {}: preamble '{}' is for Unix sockets only", arrival.peer_name(), preamble->target);
    return refuse_socket(arrival.release_fd(), make_error(Code::kProtocol, "preamble '" + preamble->target + "' is for Unix sockets only"));
  }
  if (preamble->target == "handoff") return on_handoff(std::move(entry));
  bool is_unix = arrival.is_unix();
  int fd = arrival.release_fd();
  if (options.on_foreign && options.on_foreign(*preamble, fd, is_unix)) return;
  RT_WARN("closed a connection from {}: nobody here is '{} {}'", net::peer_name_of(fd), preamble->target, preamble->id);
  refuse_socket(fd, make_error(Code::kNotFound, fmt::format("no '{}{}{}' behind this address: it ended, or lives on another node", preamble->target,
                                                            preamble->id.empty() ? "" : " ", preamble->id)));
}

void Server::Impl::on_handoff(Arriving entry) {
  Fd fd(entry.arrival->release_passed_fd());
  struct stat info;
  int type = 0;
  socklen_t size = sizeof(type);
  bool is_stream = fd.valid() && ::fstat(fd.get(), &info) == 0 && S_ISSOCK(info.st_mode) &&
                   ::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
  if (!is_stream) {
    RT_WARN("a hand-over brought no connected socket");
    return;
  }
  if (load() >= static_cast<size_t>(options.max_connections)) {
    return refuse_socket(fd.release(), make_error(Code::kResourceExhausted, "too many connections are open here (max_connections)"));
  }
  greet(fd.release(), loop.now_us() + options.hello_timeout_us);
}

void Server::Impl::greet(int fd, int64_t deadline_us) {
  auto connection = Connection::Impl::make(loop, loop.adopt(fd));
  Connection* raw = connection.get();
  raw->impl_->on_greeting = [this, raw](const FrameHeader& header, Bytes message) { on_hello(raw, header, message); };
  raw->impl_->on_gone = [this, raw](const Error& why) {
    RT_DEBUG("a connection from {} ended before its hello: {}", raw->impl_->peer.name, why.message);
    auto it = greeted.find(raw);
    if (it == greeted.end()) return;
    loop.cancel(it->second.timer);
    greeted.erase(it);
  };
  auto timer = loop.run_after(std::max<int64_t>(0, deadline_us - loop.now_us()), [this, raw] {
    auto keep = greeted.at(raw).connection;
    RT_WARN("closed a connection from {}: no hello within {} ms", raw->impl_->peer.name, options.hello_timeout_us / 1000);
    raw->impl_->refuse(make_error(Code::kTimeout, fmt::format("no hello within {} ms", options.hello_timeout_us / 1000)));
  });
  greeted.emplace(raw, Greeted{std::move(connection), timer});
}

void Server::Impl::on_hello(Connection* raw, const FrameHeader& header, Bytes message) {
  auto it = greeted.find(raw);
  auto keep = it->second.connection;
  proto::Hello hello;
  Status status;
  if (header.kind != FrameKind::kHello) {
    status = make_error(Code::kProtocol, "the first frame is not a hello");
  } else if (!hello.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    status = make_error(Code::kProtocol, "the hello cannot be parsed");
  } else {
    status = check_hello(options.identity, hello, raw->impl_->peer.is_unix);
  }
  if (!status) {
    RT_WARN("refused {} {}: {}", hello.role().empty() ? "a peer" : hello.role(), raw->impl_->peer.name, status.error().message);
    raw->impl_->refuse(status.error());
    return;
  }
  Greeted entry = std::move(it->second);
  greeted.erase(it);
  admit(std::move(entry), hello);
}

void Server::Impl::admit(Greeted entry, const proto::Hello& hello) {
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
  // Last: becoming open drops the callback that called this.
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

Server::Server(net::Loop& loop, ServerOptions options) : impl_(std::make_unique<Impl>(loop, std::move(options))) {}
Server::~Server() = default;

Status Server::listen(const net::Address& address) {
  RT_ASSIGN(auto listener, impl_->loop.listen(address, [impl = impl_.get()](int fd) { impl->accept(fd); }));
  impl_->listeners.push_back(std::move(listener));
  return {};
}

Status Server::listen_fd(int fd) {
  RT_ASSIGN(auto listener, impl_->loop.listen_fd(fd, [impl = impl_.get()](int accepted) { impl->accept(accepted); }));
  impl_->listeners.push_back(std::move(listener));
  return {};
}

void Server::adopt(int fd) { impl_->greet(fd, impl_->loop.now_us() + impl_->options.hello_timeout_us); }
void Server::set_identity(Identity identity) { impl_->options.identity = std::move(identity); }
const Identity& Server::identity() const { return impl_->options.identity; }

int Server::port() const {
  for (const auto& listener : impl_->listeners) {
    net::Address address = listener->local_address();
    if (address.kind == net::Address::Kind::kTcp) return address.port;
  }
  return 0;
}

const std::vector<std::shared_ptr<Connection>>& Server::connections() const { return impl_->connections; }

}  // namespace rt::rpc
