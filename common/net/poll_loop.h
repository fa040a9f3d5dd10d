// The loop of drivers and workers: an epoll set without a thread of its own. The thread that waits
// for something also reads the sockets:
//
//   PollLoop::Ready ready;
//   mutex.unlock();
//   loop.wait(ready, timeout_us);  // several threads at once, if the loop was made for kMany
//   mutex.lock();
//   loop.dispatch(ready);
//
// All other methods are called under the same mutex, except post() and wake(). A descriptor that
// was closed between wait() and dispatch() is recognised by its generation and skipped.
#pragma once

#include <functional>
#include <memory>

#include "common/net/loop.h"

namespace rt::net {

class PollLoop final : public Loop {
 public:
  static constexpr int kMaxEvents = 64;
  struct Ready {
    int count = 0;
    struct {
      uint32_t events;
      uint64_t token;
    } items[kMaxEvents];
  };

  // kOne: no two threads are ever in wait() together. The limits of the waits then share one timer
  // of the kernel, which stays set from one wait to the next, so that a limit costs nothing where
  // most waits end sooner.
  enum class Waiters { kMany, kOne };
  explicit PollLoop(Waiters waiters = Waiters::kMany);
  ~PollLoop() override;

  // Blocks until a descriptor is ready, a timer is due, wake() or post() was called, or timeout_us
  // passed (-1: no limit, 0: poll). It may return early without a reason. False when a signal
  // interrupted it: the caller may want to run its signal handlers.
  bool wait(Ready& ready, int64_t timeout_us);
  // Handles what wait() found, due timers and posted tasks; then flushes every stream that has
  // bytes queued.
  void dispatch(const Ready& ready);
  void flush_all();
  // For the last moment of a process: sends what is queued, waiting up to `limit_us` for sockets
  // that are full. Safe in a signal handler: nothing is allocated, freed or called back.
  void send_last(int64_t limit_us);
  // Makes one thread that is in wait() return, or the next one to enter it. Any thread; cheap when
  // a wake is already pending.
  void wake();
  // Returns a function that does the same and may outlive the loop; then it does nothing. It may be
  // called anywhere, even from inside a garbage collector.
  std::function<void()> waker() const;

  int64_t now_us() const override;
  TimerId run_after(int64_t delay_us, Task task) override;
  void cancel(TimerId id) override;
  void post(Task task) override;
  void connect(const Address& address, int64_t timeout_us,
               std::function<void(Result<std::unique_ptr<Stream>>)> done) override;
  Result<std::unique_ptr<Listener>> listen(const Address& address,
                                           std::function<void(int fd)> accept) override;
  Result<std::unique_ptr<Listener>> listen_fd(int listening_fd,
                                              std::function<void(int fd)> accept) override;
  std::unique_ptr<Stream> adopt(int fd) override;
  std::unique_ptr<FdWatch> watch_readable(int fd, Task on_readable) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::net
