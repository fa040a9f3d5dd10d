// Passing descriptors over Unix sockets (SCM_RIGHTS).
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "common/base/clock.h"
#include "common/net/address.h"

namespace rt::net {
namespace {

constexpr int kMaxFds = 8;
constexpr int64_t kSendTimeoutUs = 10'000'000;

// Waits until the socket is ready. Returns false when `deadline_us` passed first.
bool wait_for(int fd, short events, int64_t deadline_us) {
  while (true) {
    int64_t left_us = deadline_us - steady_now_us();
    if (left_us <= 0) return false;
    pollfd p{fd, events, 0};
    int n = ::poll(&p, 1, static_cast<int>((left_us + 999) / 1000));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;  // The caller's next system call reports the error.
  }
}

}  // namespace

Status send_with_fds(int socket, std::string_view data, const int* fds, int count) {
  if (data.empty() || count < 0 || count > kMaxFds)
    return make_error(Code::kInvalid,
                      "descriptors travel with at least one byte, and at most 8 at once");
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  int64_t deadline = steady_now_us() + kSendTimeoutUs;
  bool attach = count > 0;
  while (!data.empty()) {
    iovec part{const_cast<char*>(data.data()), data.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (attach) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * count);
      std::memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
    }
    ssize_t n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (n > 0) {
      attach = false;
      data.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket, POLLOUT, deadline))
        return make_error(Code::kTimeout, "the receiver of a descriptor does not read");
    } else if (errno != EINTR) {
      return errno_error("cannot pass a descriptor", errno);
    }
  }
  return {};
}

Result<ReceivedFds> receive_with_fds(int socket, size_t max_bytes, int64_t timeout_us) {
  int64_t deadline = timeout_us < 0 ? INT64_MAX / 2 : steady_now_us() + timeout_us;
  ReceivedFds received;
  received.data.resize(max_bytes);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  while (true) {
    if (!wait_for(socket, POLLIN, deadline))
      return make_error(Code::kTimeout, "nobody sent the expected descriptor in time");
    iovec part{received.data.data(), max_bytes};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return errno_error("cannot receive a descriptor", errno);
    for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
      if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
      size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
        received.fds.push_back(fd);
      }
    }
    if (n == 0)
      return make_error(Code::kUnavailable, "the sender of a descriptor closed the connection");
    received.data.resize(static_cast<size_t>(n));
    return received;
  }
}

}  // namespace rt::net
