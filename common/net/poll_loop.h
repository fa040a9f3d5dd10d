// The drivers' and workers' loop: an epoll set without a thread of its own. Whoever waits for
// something does the reading:
//
//   PollLoop::Ready ready;
//   mutex.unlock();  loop.wait(ready, timeout_us);  mutex.lock();     // several threads may wait
//   at once, if the loop was made for it loop.dispatch(ready); // under the owner's mutex
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

  // One: never two threads in wait(). Then a limit costs nothing where many waits end sooner: they
  // share an alarm, which the kernel keeps from one to the next.
  enum class Waiters { kMany, kOne };
  explicit PollLoop(Waiters waiters = Waiters::kMany);
  ~PollLoop() override;

  // Blocks until a descriptor is ready, a timer is due, wake() or post() was called, or timeout_us
  // passed (-1: no limit, 0: poll); now and then it returns sooner. False when a signal interrupted
  // it (the caller may want to run its handlers).
  bool wait(Ready& ready, int64_t timeout_us);
  // Handles what wait() found, due timers and posted tasks; then flushes every stream that has
  // something queued.
  void dispatch(const Ready& ready);
  void flush_all();
  // The last thing this process does: sends what is queued, waiting up to `limit_us` for sockets
  // that are full. May be called in a signal handler: nothing is allocated, freed or called back.
  void send_last(int64_t limit_us);
  // Makes one thread that is in wait() return (or the next one to enter it). Any thread; cheap when
  // a wake is already pending.
  void wake();
  // The same, for those who may outlive the loop: then it does nothing. It may be called anywhere,
  // also inside a collector.
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
