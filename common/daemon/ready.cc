#include "common/daemon/ready.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/base/environment.h"
#include "common/base/fd.h"
#include "common/base/log.h"

namespace rt::daemon {

ReadyNotice::ReadyNotice() : socket_(environment("NOTIFY_SOCKET")) {
  ::unsetenv("NOTIFY_SOCKET");
}

void ReadyNotice::send() const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.empty()) return;
  if (socket_.size() >= sizeof(address.sun_path)) return RT_WARN("NOTIFY_SOCKET {} is longer than a socket's name can be", socket_);
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;   // an abstract name
  constexpr std::string_view kReady = "READY=1";
  Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  if (::sendto(fd.get(), kReady.data(), kReady.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), size) < 0) {
    RT_WARN("cannot tell {} that this is ready: {}", socket_, std::strerror(errno));
  }
}

}  // namespace rt::daemon
