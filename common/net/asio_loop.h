// The loop of the daemons: one thread that runs one boost::asio::io_context. Asio is included by
// asio_loop.cc, not here.
#pragma once

#include <initializer_list>
#include <memory>

#include "common/net/loop.h"

namespace rt::net {

class AsioLoop final : public Loop {
 public:
  AsioLoop();
  ~AsioLoop() override;

  void run();   // Returns after stop().
  void stop();  // Any thread may call it.
  // Calls `handler(signal)` in the loop's thread. May be called once per loop.
  void on_signals(std::initializer_list<int> signals, std::function<void(int)> handler);

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
