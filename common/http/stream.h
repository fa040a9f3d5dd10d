// A connected socket as cpp-httplib wants it, with the head of the next request at hand before it
// is parsed.
#pragma once

#include <httplib.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/net/channel.h"

namespace rt::http {

class SocketStream final : public httplib::Stream {
 public:
  SocketStream(std::unique_ptr<net::Channel> channel, int64_t io_timeout_ms)
      : channel_(std::move(channel)), io_timeout_ms_(io_timeout_ms) {}

  enum class Head { kRead, kClosed, kTooLarge };
  // Waits for a whole request head; its first byte may take `idle_ms`.
  Head read_head(int64_t idle_ms);
  // Of the request that comes next, through its empty line.
  std::string_view head() const { return std::string_view(buffer_).substr(0, head_bytes_); }
  // Takes all lines of this name out of the head that was read, which check_head() has found good.
  void drop_field(std::string_view name);
  // What follows is no request: a body is left unread.
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }
  // The answer is the last: says so, and reads what still comes, for so long, so that the peer gets
  // to it.
  void drain(int64_t ms);
  // The peer has said that it sends no more; a client that asks does so when it goes.
  bool peer_closed() const { return channel_->peer_closed(); }
  // The channel and what was read from it. The stream is over.
  std::unique_ptr<net::Channel> release(std::string* rest);

  bool is_readable() const override {
    return !buffer_.empty() || channel_->wait_readable(io_timeout_ms_);
  }
  bool is_writable() const override { return channel_->wait_writable(io_timeout_ms_); }
  ssize_t read(char* data, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return channel_->fd(); }

 private:
  std::unique_ptr<net::Channel> channel_;
  int64_t io_timeout_ms_;
  std::string buffer_;
  size_t head_bytes_ = 0;
  bool given_up_ = false;
};

}  // namespace rt::http
