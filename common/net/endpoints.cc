#include "common/net/endpoints.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "common/base/log.h"
#include "common/net/sockets.h"

namespace rt::net {
namespace {

constexpr int kAcceptsPerTurn = 64;
// The pause after running out of descriptors or memory.
constexpr int64_t kAcceptPauseUs = 100'000;

class ListenerCore final : public Watcher, public std::enable_shared_from_this<ListenerCore> {
 public:
  ListenerCore(Reactor& reactor, Fd fd, AcceptHandler accept)
      : reactor_(reactor), fd_(std::move(fd)), accept_(std::move(accept)) {}

  Status start() {
    key_ = reactor_.watch(fd_.get(), shared_from_this(), kRead, Reactor::Trigger::kLevel);
    if (key_ == 0) return errno_error("cannot watch a listening socket", errno);
    return {};
  }

  void stop() {
    if (key_ != 0) reactor_.unwatch(std::exchange(key_, 0));
    if (pause_ != 0) reactor_.loop().cancel(std::exchange(pause_, 0));
    fd_.reset();
  }

  bool on_ready(uint32_t) override {
    for (int i = 0; i < kAcceptsPerTurn && fd_.valid(); ++i) {
      int fd = ::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        prepare_connected(fd);
        accept_(fd);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        pause(errno);
        return false;
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return false;
      } else if (errno == EINVAL || errno == EBADF) {
        RT_ERROR("a listening socket failed: {}", std::strerror(errno));
        stop();
      }
      // Any other error concerns a single connection that has ended already.
    }
    return false;
  }

  int fd() const { return fd_.get(); }

 private:
  void pause(int errnum) {
    RT_WARN("cannot accept connections: {}; trying again in {} ms", std::strerror(errnum),
            kAcceptPauseUs / 1000);
    reactor_.update(key_, kNoInterest);
    pause_ = reactor_.loop().run_after(kAcceptPauseUs, [this] {  // stop() cancels this.
      pause_ = 0;
      reactor_.update(key_, kRead);
    });
  }

  Reactor& reactor_;
  Fd fd_;
  const AcceptHandler accept_;
  Reactor::Key key_ = 0;
  Loop::TimerId pause_ = 0;
};

class ListenerHandle final : public Listener {
 public:
  ListenerHandle(std::shared_ptr<ListenerCore> core, Address address, bool owns_path)
      : core_(std::move(core)), address_(std::move(address)) {
    owns_path_ = owns_path && ::lstat(address_.path.c_str(), &bound_) == 0;
  }
  ~ListenerHandle() override {
    core_->stop();
    struct stat now;
    // Another process may have replaced the socket file meanwhile; then it stays.
    if (owns_path_ && ::lstat(address_.path.c_str(), &now) == 0 && now.st_dev == bound_.st_dev &&
        now.st_ino == bound_.st_ino) {
      ::unlink(address_.path.c_str());
    }
  }
  Address local_address() const override { return address_; }

 private:
  // Shared with the reactor, so that an accept handler may destroy this handle.
  std::shared_ptr<ListenerCore> core_;
  const Address address_;
  bool owns_path_;
  struct stat bound_{};
};

Result<std::shared_ptr<ListenerCore>> start_listener(Reactor& reactor, Fd fd,
                                                     AcceptHandler accept) {
  auto core = std::make_shared<ListenerCore>(reactor, std::move(fd), std::move(accept));
  RT_TRY(core->start());
  return core;
}

class WatchCore final : public Watcher {
 public:
  explicit WatchCore(Loop::Task task) : task_(std::move(task)) {}
  bool on_ready(uint32_t) override {
    if (active) task_();
    return false;
  }
  bool active = true;

 private:
  const Loop::Task task_;
};

class WatchHandle final : public FdWatch {
 public:
  WatchHandle(Reactor& reactor, int fd, Loop::Task task)
      : reactor_(reactor), core_(std::make_shared<WatchCore>(std::move(task))) {
    key_ = reactor.watch(fd, core_, kRead, Reactor::Trigger::kLevel);
    if (key_ == 0) RT_ERROR("descriptor {} cannot be watched: {}", fd, std::strerror(errno));
  }
  ~WatchHandle() override {
    core_->active = false;
    if (key_ != 0) reactor_.unwatch(key_);
  }

 private:
  Reactor& reactor_;
  // Shared with the reactor, because the task may destroy this handle.
  std::shared_ptr<WatchCore> core_;
  Reactor::Key key_;
};

}  // namespace

Result<std::unique_ptr<Listener>> make_listener(Reactor& reactor, const Address& address,
                                                AcceptHandler accept) {
  RT_ASSIGN(int fd, listen_on(address));
  bool is_unix = address.kind == Address::Kind::kUnix;
  Address local = is_unix ? address : local_address_of(fd);
  RT_ASSIGN(auto core, start_listener(reactor, Fd(fd), std::move(accept)));
  return std::unique_ptr<Listener>(new ListenerHandle(std::move(core), std::move(local), is_unix));
}

Result<std::unique_ptr<Listener>> make_listener(Reactor& reactor, int listening_fd,
                                                AcceptHandler accept) {
  Fd fd(listening_fd);
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    return make_error(Code::kInvalid,
                      fmt::format("descriptor {} is not a listening socket", listening_fd));
  }
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  Address local = local_address_of(fd.get());
  RT_ASSIGN(auto core, start_listener(reactor, std::move(fd), std::move(accept)));
  return std::unique_ptr<Listener>(new ListenerHandle(std::move(core), std::move(local), false));
}

std::unique_ptr<FdWatch> make_fd_watch(Reactor& reactor, int fd, Loop::Task on_readable) {
  return std::make_unique<WatchHandle>(reactor, fd, std::move(on_readable));
}

}  // namespace rt::net
