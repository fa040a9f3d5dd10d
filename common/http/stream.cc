#include "common/http/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/clock.h"
#include "common/net/sockets.h"

namespace rt::http {
namespace {

constexpr size_t kMaxHeadBytes = 64 << 10;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

}  // namespace

bool SocketStream::wait(short events, int64_t timeout_ms) const {
  const int64_t deadline = steady_now_us() + timeout_ms * 1000;
  for (;;) {
    pollfd entry{fd_.get(), events, 0};
    int64_t left_ms = std::max<int64_t>(0, (deadline - steady_now_us() + 999) / 1000);
    int n = ::poll(&entry, 1, static_cast<int>(left_ms));
    if (n < 0 && errno == EINTR) continue;
    return n > 0 && (entry.revents & (events | POLLHUP)) != 0;
  }
}

ssize_t SocketStream::receive(char* data, size_t size, int64_t timeout_ms) {
  for (;;) {
    ssize_t n = ::recv(fd_.get(), data, size, 0);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait(POLLIN, timeout_ms)) return -1;
  }
}

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
    ssize_t n = receive(data, sizeof data, std::min(left_ms, buffer_.empty() ? idle_ms : io_timeout_ms_));
    if (n <= 0) return Head::kClosed;
    buffer_.append(data, static_cast<size_t>(n));
  }
}

bool SocketStream::peer_closed() const {
  char next;
  return ::recv(fd_.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

Fd SocketStream::release(std::string* rest) {
  *rest = std::move(buffer_);
  buffer_.clear();
  return std::move(fd_);
}

ssize_t SocketStream::read(char* data, size_t size) {
  if (buffer_.empty()) return receive(data, size, io_timeout_ms_);
  size_t n = std::min(size, buffer_.size());
  std::memcpy(data, buffer_.data(), n);
  buffer_.erase(0, n);
  return static_cast<ssize_t>(n);
}

ssize_t SocketStream::write(const char* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = ::send(fd_.get(), data + done, size - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n < 0 && errno != EINTR && (errno != EAGAIN || !wait(POLLOUT, io_timeout_ms_))) {
      return -1;
    }
  }
  return static_cast<ssize_t>(size);
}

void SocketStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  std::string name = net::peer_name_of(fd_.get());
  size_t colon = name.rfind(':');
  ip = name.substr(0, colon);
  port = colon == std::string::npos ? 0 : std::atoi(name.c_str() + colon + 1);
}

void SocketStream::get_local_ip_and_port(std::string& ip, int& port) const {
  net::Address address = net::local_address_of(fd_.get());
  ip = address.host;
  port = address.port;
}

}  // namespace rt::http
