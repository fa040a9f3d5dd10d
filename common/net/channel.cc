#include "common/net/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "common/base/clock.h"

namespace rt::net {

bool Channel::wait(short events, int64_t timeout_ms) const {
  const int64_t deadline = steady_now_us() + timeout_ms * 1000;
  for (;;) {
    pollfd entry{fd_.get(), events, 0};
    int64_t left_ms = std::max<int64_t>(0, (deadline - steady_now_us() + 999) / 1000);
    int n = ::poll(&entry, 1, static_cast<int>(left_ms));
    if (n < 0 && errno == EINTR) continue;
    return n > 0 && (entry.revents & (events | POLLHUP)) != 0;
  }
}

ssize_t Channel::read_some(void* data, size_t size, int64_t timeout_ms) {
  for (;;) {
    ssize_t n = ::recv(fd_.get(), data, size, 0);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -1;
    if (!wait(POLLIN, timeout_ms)) return errno = ETIMEDOUT, -1;
  }
}

ssize_t Channel::write_some(const void* data, size_t size, int64_t timeout_ms) {
  for (;;) {
    ssize_t n = ::send(fd_.get(), data, size, MSG_NOSIGNAL);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -1;
    if (!wait(POLLOUT, timeout_ms)) return errno = ETIMEDOUT, -1;
  }
}

bool Channel::wait_readable(int64_t timeout_ms) { return wait(POLLIN, timeout_ms); }
bool Channel::wait_writable(int64_t timeout_ms) const { return wait(POLLOUT, timeout_ms); }

bool Channel::peer_closed() const {
  pollfd entry{fd_.get(), POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace rt::net
