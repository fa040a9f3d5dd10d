// Attempts to connect: resolve the host, then try each address, all within one time limit.
#include <fmt/format.h>

#include <cstring>

#include "common/base/thread.h"
#include "common/net/endpoints.h"
#include "common/net/socket_stream.h"
#include "common/net/sockets.h"

namespace rt::net {
namespace {

// A Unix socket whose backlog is full refuses for the moment; the attempt is repeated after this.
constexpr int64_t kBacklogRetryUs = 2'000;

// The tasks, timers and watches that refer to an attempt keep it alive until finish().
class ConnectAttempt final : public Watcher, public std::enable_shared_from_this<ConnectAttempt> {
 public:
  ConnectAttempt(Reactor& reactor, Address address, int64_t timeout_us, ConnectHandler done)
      : reactor_(reactor),
        address_(std::move(address)),
        timeout_us_(timeout_us),
        done_(std::move(done)) {}

  void start() {
    if (timeout_us_ >= 0) {
      timer_ = reactor_.loop().run_after(timeout_us_, [self = shared_from_this()] {
        self->timer_ = 0;
        self->finish(make_error(
            Code::kTimeout,
            fmt::format(
                "no connection to {} within {} ms: is the machine up, and the address right?",
                self->address_.to_string(), self->timeout_us_ / 1000)));
      });
    }
    reactor_.loop().post([self = shared_from_this()] { self->find_candidates(); });
  }

  bool on_ready(uint32_t) override {
    if (!fd_.valid()) return false;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    reactor_.unwatch(std::exchange(key_, 0));
    error == 0 ? succeed() : try_next(error);
    return false;
  }

 private:
  void find_candidates() {
    if (address_.kind == Address::Kind::kUnix) {
      auto found = unix_sockaddr(address_.path);
      if (!found) return finish(std::move(found).error());
      candidates_.push_back(std::move(*found));
      return attempt();
    }
    SockAddr literal;
    if (literal_sockaddr(address_.host, address_.port, literal)) {
      candidates_.push_back(std::move(literal));
      return attempt();
    }
    resolve_in_thread();
  }

  // The lookup may block for long, so it has a thread, which nobody waits for (see README.md).
  void resolve_in_thread() {
    auto thread = start_thread([self = shared_from_this(), link = reactor_.link(),
                                host = address_.host, port = address_.port]() mutable {
      auto found = std::make_shared<Result<std::vector<SockAddr>>>(resolve(host, port, false));
      link->post([self = std::move(self), found] {
        if (!self->done_) return;
        if (!*found) return self->finish(std::move(*found).error());
        self->candidates_ = std::move(**found);
        self->attempt();
      });
    });
    if (!thread)
      return finish(
          make_error(thread.error().code, "cannot look up a host name: " + thread.error().message));
    thread->detach();
  }

  void attempt() {
    if (!done_) return;
    const SockAddr& to = candidates_[next_];
    fd_.reset(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd_.valid()) return finish(errno_error("cannot make a socket", errno));
    if (::connect(fd_.get(), to.get(), to.size) == 0) return succeed();
    if (errno == EAGAIN) {
      fd_.reset();
      reactor_.loop().run_after(kBacklogRetryUs, [self = shared_from_this()] { self->attempt(); });
      return;
    }
    if (errno != EINPROGRESS) return try_next(errno);
    key_ = reactor_.watch(fd_.get(), shared_from_this(), kWrite, Reactor::Trigger::kLevel);
    if (key_ == 0) try_next(errno);
  }

  void try_next(int error) {
    fd_.reset();
    if (++next_ < candidates_.size()) return attempt();
    finish(
        make_error(no_answer(error) ? Code::kTimeout : Code::kUnavailable,
                   fmt::format("cannot connect to {}: {}", address_.to_string(), explain(error))));
  }

  // Whether the other host did not answer, or there is no route to it.
  static bool no_answer(int error) {
    return error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT ||
           error == EHOSTDOWN || error == ENETDOWN;
  }

  std::string explain(int error) const {
    if (error == ECONNREFUSED || error == ENOENT)
      return std::string(std::strerror(error)) +
             " (nothing listens there: is it started, and the address right?)";
    return std::strerror(error);
  }

  void succeed() {
    if (!is_self_connected()) return finish(make_stream(reactor_, fd_.release()));
    linger at_once{1, 0};  // Without this the port would stay taken for a minute.
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    try_next(ECONNREFUSED);
  }

  // Whether TCP has connected the socket with itself, as happens when nobody listens on a local
  // port and the kernel picks that very port for our end. Repeated attempts to reach a lost head
  // get there sooner or later, and would keep the port from the head that is started again.
  bool is_self_connected() const {
    if (address_.kind == Address::Kind::kUnix) return false;
    sockaddr_storage here{}, there{};
    socklen_t here_size = sizeof(here), there_size = sizeof(there);
    return ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&here), &here_size) == 0 &&
           ::getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&there), &there_size) == 0 &&
           here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
  }

  void finish(Result<std::unique_ptr<Stream>> result) {
    if (!done_) return;
    auto self = shared_from_this();
    if (key_ != 0) reactor_.unwatch(std::exchange(key_, 0));
    if (timer_ != 0) reactor_.loop().cancel(std::exchange(timer_, 0));
    fd_.reset();
    ConnectHandler done = std::exchange(done_, nullptr);
    done(std::move(result));
  }

  Reactor& reactor_;
  const Address address_;
  const int64_t timeout_us_;
  ConnectHandler done_;  // Null after finish().
  std::vector<SockAddr> candidates_;
  size_t next_ = 0;
  Fd fd_;
  Reactor::Key key_ = 0;
  Loop::TimerId timer_ = 0;
};

}  // namespace

void start_connect(Reactor& reactor, const Address& address, int64_t timeout_us,
                   ConnectHandler done) {
  std::make_shared<ConnectAttempt>(reactor, address, timeout_us, std::move(done))->start();
}

}  // namespace rt::net
