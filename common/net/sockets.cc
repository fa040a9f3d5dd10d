#include "common/net/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace rt::net {
namespace {

// TCP keep-alive: the loss of a machine is noticed after a minute, also by a peer that has nothing
// to send.
constexpr int kKeepaliveIdleS = 30;
constexpr int kKeepaliveIntervalS = 10;
constexpr int kKeepaliveProbes = 3;

}  // namespace

Result<SockAddr> unix_sockaddr(const std::string& path) {
  SockAddr address;
  auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
  un->sun_family = AF_UNIX;
  std::string reachable = path;
  if (path.empty() || path.find('\0') != std::string::npos) {
    return make_error(Code::kInvalid, "a Unix socket needs a path");
  }
  if (path.size() >= sizeof(un->sun_path)) {
    size_t slash = path.rfind('/');
    std::string directory = slash == std::string::npos ? "."
                            : slash == 0               ? "/"
                                                       : path.substr(0, slash);
    std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    address.directory.reset(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.directory.valid())
      return errno_error("cannot open the directory of socket " + path, errno);
    reachable = "/proc/self/fd/" + std::to_string(address.directory.get()) + "/" + name;
    if (reachable.size() >= sizeof(un->sun_path)) {
      return make_error(Code::kInvalid, "the file name of socket " + path +
                                            " is too long: use one of at most 80 characters");
    }
  }
  std::memcpy(un->sun_path, reachable.c_str(), reachable.size() + 1);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + reachable.size() + 1);
  return address;
}

bool literal_sockaddr(const std::string& host, int port, SockAddr& out) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  // "localhost" means IPv4 for listeners and clients alike, whatever order the resolver prefers.
  if (inet_pton(AF_INET, host == "localhost" ? "127.0.0.1" : host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    out.size = sizeof(sockaddr_in);
    return true;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    out.size = sizeof(sockaddr_in6);
    return true;
  }
  return false;
}

Result<std::vector<SockAddr>> resolve(const std::string& host, int port, bool passive) {
  std::vector<SockAddr> found;
  SockAddr literal;
  if (literal_sockaddr(host, port, literal)) {
    found.push_back(std::move(literal));
    return found;
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* list = nullptr;
  int rc = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints,
                       &list);
  if (rc != 0) {
    return make_error(Code::kUnavailable,
                      "cannot find host '" + host +
                          "': " + (rc == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(rc)));
  }
  for (addrinfo* a = list; a != nullptr; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
    SockAddr address;
    std::memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    address.size = a->ai_addrlen;
    found.push_back(std::move(address));
  }
  freeaddrinfo(list);
  if (found.empty()) return make_error(Code::kUnavailable, "host '" + host + "' has no IP address");
  return found;
}

namespace {

Address to_address(const sockaddr_storage& storage, socklen_t size) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return Address::tcp(text, ntohs(v4.sin_port));
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    }
    return Address::tcp(text, ntohs(v6.sin6_port));
  }
  if (storage.ss_family == AF_UNIX && size > offsetof(sockaddr_un, sun_path)) {
    const auto& un = reinterpret_cast<const sockaddr_un&>(storage);
    return Address::unix_socket(
        std::string(un.sun_path, strnlen(un.sun_path, size - offsetof(sockaddr_un, sun_path))));
  }
  return Address::unix_socket("");
}

}  // namespace

bool is_unix_socket(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

Address local_address_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return Address::tcp("", 0);
  return to_address(storage, size);
}

std::string peer_name_of(int fd) {
  if (is_unix_socket(fd)) return "unix";
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "unknown";
  return to_address(storage, size).to_string();
}

void prepare_connected(int fd) {
  int flags = fcntl(fd, F_GETFL);
  if ((flags & O_NONBLOCK) == 0) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  int on = 1;
  // This fails on Unix sockets, which have no such delay and whose peers cannot vanish silently.
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) return;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepaliveIdleS, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepaliveIntervalS, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepaliveProbes, sizeof(int));
}

}  // namespace rt::net
