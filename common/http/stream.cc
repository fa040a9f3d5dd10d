#include "common/http/stream.h"

#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "common/base/clock.h"
#include "common/net/sockets.h"

namespace rt::http {
namespace {

constexpr size_t kMaxHeadBytes = 64 << 10;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

}  // namespace

SocketStream::Head SocketStream::read_head(int64_t idle_ms) {
  const int64_t deadline = steady_now_us() + (idle_ms + io_timeout_ms_) * 1000;
  for (;;) {
    size_t end = buffer_.find(kHeadEnd);
    if (end != std::string::npos) {
      head_bytes_ = end + kHeadEnd.size();
      return head_bytes_ <= kMaxHeadBytes ? Head::kRead : Head::kTooLarge;
    }
    if (buffer_.size() > kMaxHeadBytes) return Head::kTooLarge;
    int64_t left_ms = (deadline - steady_now_us()) / 1000;
    if (left_ms <= 0) return Head::kClosed;
    char data[8192];
    ssize_t n = channel_->read_some(data, sizeof data,
                                    std::min(left_ms, buffer_.empty() ? idle_ms : io_timeout_ms_));
    if (n <= 0) return Head::kClosed;
    buffer_.append(data, static_cast<size_t>(n));
  }
}

void SocketStream::drop_field(std::string_view name) {
  for (size_t line = buffer_.find('\n') + 1; line < head_bytes_;) {
    const size_t end = buffer_.find('\n', line) + 1;
    if (end - line > name.size() &&
        strncasecmp(buffer_.data() + line, name.data(), name.size()) == 0 &&
        buffer_[line + name.size()] == ':') {
      buffer_.erase(line, end - line);
      head_bytes_ -= end - line;
    } else {
      line = end;
    }
  }
}

void SocketStream::drain(int64_t ms) {
  ::shutdown(channel_->fd(), SHUT_WR);
  const int64_t deadline = steady_now_us() + ms * 1000;
  char data[8192];
  for (int64_t left_ms = ms; left_ms > 0; left_ms = (deadline - steady_now_us()) / 1000) {
    if (channel_->read_some(data, sizeof data, left_ms) <= 0) return;
  }
}

std::unique_ptr<net::Channel> SocketStream::release(std::string* rest) {
  *rest = std::move(buffer_);
  buffer_.clear();
  return std::move(channel_);
}

ssize_t SocketStream::read(char* data, size_t size) {
  if (buffer_.empty()) return channel_->read_some(data, size, io_timeout_ms_);
  size_t n = std::min(size, buffer_.size());
  std::memcpy(data, buffer_.data(), n);
  buffer_.erase(0, n);
  return static_cast<ssize_t>(n);
}

ssize_t SocketStream::write(const char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = channel_->write_some(data + done, size - done, io_timeout_ms_);
    if (n < 0) return -1;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(size);
}

void SocketStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  std::string name = net::peer_name_of(channel_->fd());
  size_t colon = name.rfind(':');
  ip = name.substr(0, colon);
  port = colon == std::string::npos ? 0 : std::atoi(name.c_str() + colon + 1);
}

void SocketStream::get_local_ip_and_port(std::string& ip, int& port) const {
  net::Address address = net::local_address_of(channel_->fd());
  ip = address.host;
  port = address.port;
}

}  // namespace rt::http
