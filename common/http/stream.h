// A connected socket as cpp-httplib wants it, with the head of the next request at hand before it is parsed.
#pragma once

#include <httplib.h>

#include <string>

#include "common/base/fd.h"

namespace rt::http {

class SocketStream final : public httplib::Stream {
 public:
  // Non-blocking.
  SocketStream(Fd fd, int64_t io_timeout_ms) : fd_(std::move(fd)), io_timeout_ms_(io_timeout_ms) {}

  enum class Head { kRead, kClosed, kTooLarge };
  // Waits for a whole request head; its first byte may take `idle_ms`.
  Head read_head(int64_t idle_ms);
  // What was read and not taken: begins with the head.
  const std::string& buffered() const { return buffer_; }
  size_t head_bytes() const { return head_bytes_; }
  // The peer has said that it sends no more; a client that asks does so when it goes.
  bool peer_closed() const;
  // The socket and what was read from it. The stream is over.
  Fd release(std::string* rest);

  bool is_readable() const override { return !buffer_.empty() || wait(POLLIN_EVENT, io_timeout_ms_); }
  bool is_writable() const override { return wait(POLLOUT_EVENT, io_timeout_ms_); }
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return fd_.get(); }

 private:
  static constexpr short POLLIN_EVENT = 0x001, POLLOUT_EVENT = 0x004;   // poll(2)
  bool wait(short events, int64_t timeout_ms) const;
  // Bytes received, 0 at the end, -1.
  ssize_t receive(char* data, size_t size, int64_t timeout_ms);

  Fd fd_;
  int64_t io_timeout_ms_;
  std::string buffer_;
  size_t head_bytes_ = 0;
};

}  // namespace rt::http
