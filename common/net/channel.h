// A connected socket for a thread of its own: operations block, for a bounded time.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "common/base/fd.h"

namespace rt::net {

class Channel {
 public:
  // `fd` is non-blocking.
  explicit Channel(Fd fd) : fd_(std::move(fd)) {}
  virtual ~Channel() = default;

  // Return the number of bytes transferred, 0 at the end of the stream, or -1 with errno.
  // ETIMEDOUT: nothing could be transferred for `timeout_ms`.
  virtual ssize_t read_some(void* data, size_t size, int64_t timeout_ms);
  virtual ssize_t write_some(const void* data, size_t size, int64_t timeout_ms);
  // True when a read would not block; false after `timeout_ms`.
  virtual bool wait_readable(int64_t timeout_ms);
  bool wait_writable(int64_t timeout_ms) const;
  // True when the peer has closed the connection, or its sending half.
  bool peer_closed() const;
  int fd() const { return fd_.get(); }
  // Gives the descriptor to the caller; the channel cannot be used afterwards.
  Fd release() { return std::move(fd_); }

 protected:
  bool wait(short events, int64_t timeout_ms) const;  // Waits with poll(2).

 private:
  Fd fd_;
};

}  // namespace rt::net
