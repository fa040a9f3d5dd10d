// A connected socket in the form that cpp-httplib wants, which holds the head of the next request
// before it is parsed.
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
  // Waits for a whole request head, up to `idle_ms` for its first byte.
  Head read_head(int64_t idle_ms);
  // The head of the next request, including the empty line at its end.
  std::string_view head() const { return std::string_view(buffer_).substr(0, head_bytes_); }
  // Removes all fields of this name from the head that was read, which check_head() must have
  // accepted.
  void drop_field(std::string_view name);
  // Says that no request can follow, because a body is left unread.
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }
  // To be called after the last answer: ends our direction and reads for `ms` milliseconds what
  // still arrives, so that the peer gets to read the answer.
  void drain(int64_t ms);
  // Whether the peer has ended its direction, as a client does when it goes away.
  bool peer_closed() const { return channel_->peer_closed(); }
  // Hands out the channel, and in `rest` what was read from it. The stream cannot be used
  // afterwards.
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
