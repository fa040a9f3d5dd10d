#include "common/rpc/arrival.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "common/net/sockets.h"

namespace rt::rpc {

Arrival::Arrival(net::Loop& loop, int fd, Done done)
    : fd_(fd),
      is_unix_(net::is_unix_socket(fd)),
      peer_name_(net::peer_name_of(fd)),
      done_(std::move(done)) {
  watch_ = loop.watch_readable(fd, [this] { on_readable(); });
}

Arrival::~Arrival() {
  watch_.reset();
  for (int fd : passed_) ::close(fd);
  if (fd_ >= 0) ::close(fd_);
}

int Arrival::release_fd() {
  watch_.reset();
  return std::exchange(fd_, -1);
}

int Arrival::release_passed_fd() {
  if (passed_.empty()) return -1;
  int fd = passed_.back();
  passed_.pop_back();
  return fd;
}

void Arrival::on_readable() {
  char bytes[kPreambleBytes];
  iovec part{bytes, kPreambleBytes - received_.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t n = ::recvmsg(fd_, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
    return finish(make_error(Code::kUnavailable, std::strerror(errno)));
  }
  take_descriptors(message);
  if (n == 0)
    return finish(make_error(Code::kUnavailable,
                             "the peer closed the connection before its preamble was complete"));
  received_.append(bytes, static_cast<size_t>(n));
  // A foreign protocol is recognised by its first bytes, so that its connection ends at once and
  // not at the time limit.
  constexpr std::string_view kMagic = "RAY1 ";
  size_t known = std::min(received_.size(), kMagic.size());
  if (received_.size() < kPreambleBytes && received_.compare(0, known, kMagic, 0, known) == 0)
    return;
  finish(decode_preamble(received_));
}

void Arrival::take_descriptors(msghdr& message) {
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
      passed_.push_back(fd);
    }
  }
  // A peer has reason to send one descriptor. Any others are closed at once, so that it cannot fill
  // this process's descriptor table.
  while (passed_.size() > 1) {
    ::close(passed_.back());
    passed_.pop_back();
  }
}

void Arrival::finish(Result<Preamble> result) {
  watch_.reset();
  Done done = std::move(done_);  // `done` may destroy this Arrival.
  done(std::move(result));
}

}  // namespace rt::rpc
