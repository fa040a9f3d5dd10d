// Private to common/net: listeners, connection attempts and plain watches, written over a Reactor.
#pragma once

#include <functional>
#include <memory>

#include "common/base/mutex.h"
#include "common/net/reactor.h"

namespace rt::net {

// Lets other threads post to a loop that may be destroyed meanwhile. The loop calls cut() at its
// end.
class LoopLink {
 public:
  explicit LoopLink(Loop* loop) : loop_(loop) {}
  void cut() {
    MutexLock lock(mutex_);
    loop_ = nullptr;
  }
  // Any thread. Drops the task when the loop is gone.
  void post(Loop::Task task) {
    MutexLock lock(mutex_);
    if (loop_ != nullptr) loop_->post(std::move(task));
  }

 private:
  Mutex mutex_;
  Loop* loop_ GUARDED_BY(mutex_);
};

using AcceptHandler = std::function<void(int fd)>;
using ConnectHandler = std::function<void(Result<std::unique_ptr<Stream>>)>;

Result<std::unique_ptr<Listener>> make_listener(Reactor& reactor, const Address& address,
                                                AcceptHandler accept);
Result<std::unique_ptr<Listener>> make_listener(Reactor& reactor, int listening_fd,
                                                AcceptHandler accept);
std::unique_ptr<FdWatch> make_fd_watch(Reactor& reactor, int fd, Loop::Task on_readable);
void start_connect(Reactor& reactor, const Address& address, int64_t timeout_us,
                   ConnectHandler done);

}  // namespace rt::net
