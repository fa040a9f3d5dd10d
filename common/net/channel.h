// A connected socket for a thread of its own: operations wait, for a bounded time.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "common/base/fd.h"

namespace rt::net {

class Channel {
 public:
  explicit Channel(Fd fd) : fd_(std::move(fd)) {}  // non-blocking
  virtual ~Channel() = default;

  // Bytes; 0 at the end; -1 and errno, ETIMEDOUT when there was nothing for so long.
  virtual ssize_t read_some(void* data, size_t size, int64_t timeout_ms);
  virtual ssize_t write_some(const void* data, size_t size, int64_t timeout_ms);
  // A read would not wait.
  virtual bool wait_readable(int64_t timeout_ms);
  bool wait_writable(int64_t timeout_ms) const;
  // The other side has said that it sends no more.
  bool peer_closed() const;
  int fd() const { return fd_.get(); }
  // The channel is over.
  Fd release() { return std::move(fd_); }

 protected:
  bool wait(short events, int64_t timeout_ms) const;  // poll(2)

 private:
  Fd fd_;
};

}  // namespace rt::net
