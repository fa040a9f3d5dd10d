#include "common/net/probe.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/net/sockets.h"

namespace rt::net {
namespace {

Listening meaning_of(int error) {
  // EAGAIN: the backlog of a Unix socket is full.
  if (error == 0 || error == EAGAIN) return Listening::kYes;
  return error == ECONNREFUSED || error == ENOENT ? Listening::kNo : Listening::kUnclear;
}

Listening try_one(const SockAddr& address, int timeout_ms) {
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Listening::kUnclear;
  int error = ::connect(fd.get(), address.get(), address.size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{fd.get(), POLLOUT, 0};
    if (::poll(&waiting, 1, timeout_ms) <= 0) return Listening::kUnclear;
    socklen_t size = sizeof(error);
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  return meaning_of(error);
}

}  // namespace

Listening is_listening(const Address& address, int timeout_ms) {
  if (address.kind == Address::Kind::kUnix) {
    auto socket = unix_sockaddr(address.path);
    // Any error but kInvalid means that the directory of a long path is gone, and the socket with
    // it.
    return socket ? try_one(*socket, timeout_ms)
                  : meaning_of(socket.error().code == Code::kInvalid ? EINVAL : ENOENT);
  }
  auto found = resolve(address.host, address.port, false);
  return found ? try_one(found->front(), timeout_ms) : Listening::kUnclear;
}

}  // namespace rt::net
