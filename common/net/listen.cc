// listen_on() for TCP and for Unix sockets. A stale Unix socket is replaced, a live one never.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/net/address.h"
#include "common/net/listen.h"
#include "common/net/probe.h"
#include "common/net/sockets.h"

namespace rt::net {
namespace {

constexpr int kBacklog = 1024;

Error bind_error(const Address& address, const char* option, int errnum) {
  if (errnum == EADDRINUSE) {
    return make_error(
        Code::kIo,
        fmt::format("port {} on {} is in use: choose another with {}, or stop what listens there",
                    address.port, address.host.empty() ? "*" : address.host, option));
  }
  if (errnum == EACCES) {
    return make_error(
        Code::kIo,
        fmt::format(
            "port {} needs privileges this process does not have: choose one above 1023 with {}",
            address.port, option));
  }
  if (errnum == EADDRNOTAVAIL) {
    return make_error(Code::kIo, fmt::format("{} is not an address of this machine", address.host));
  }
  return errno_error("cannot listen on " + address.to_string(), errnum);
}

Result<int> listen_tcp(const Address& address, const char* option) {
  RT_ASSIGN(std::vector<SockAddr> candidates, resolve(address.host, address.port, true));
  const SockAddr& where = candidates.front();
  Fd fd(::socket(where.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno_error("cannot make a socket", errno);
  int on = 1, off = 0;
  // SO_REUSEPORT is not set: a second listener on the port shall fail.
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (where.family() == AF_INET6)
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(fd.get(), where.get(), where.size) != 0 || ::listen(fd.get(), kBacklog) != 0)
    return bind_error(address, option, errno);
  return fd.release();
}

enum class Occupant { kAlive, kStale, kNotASocket };

Occupant probe(const SockAddr& address, const std::string& path) {
  // sun_path names the socket also where `path` is too long for the system.
  struct stat info;
  const auto* un = reinterpret_cast<const sockaddr_un*>(&address.storage);
  if (::lstat(un->sun_path, &info) == 0 && !S_ISSOCK(info.st_mode)) return Occupant::kNotASocket;
  return is_listening(Address::unix_socket(path), 0) == Listening::kNo ? Occupant::kStale
                                                                       : Occupant::kAlive;
}

Status bind_unix(int fd, const SockAddr& address, const std::string& path) {
  if (::bind(fd, address.get(), address.size) == 0) return {};
  if (errno != EADDRINUSE) return errno_error("cannot listen on " + path, errno);
  switch (probe(address, path)) {
    case Occupant::kAlive:
      return make_error(
          Code::kIo,
          "socket " + path +
              " is in use: another process listens there; stop it or choose another path");
    case Occupant::kNotASocket:
      return make_error(Code::kIo,
                        path + " exists and is not a socket: remove it or choose another path");
    case Occupant::kStale: break;
  }
  ::unlink(reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path);
  if (::bind(fd, address.get(), address.size) != 0)
    return errno_error("cannot listen on " + path, errno);
  return {};
}

Result<int> listen_unix(const std::string& path) {
  RT_ASSIGN(SockAddr address, unix_sockaddr(path));
  size_t slash = path.rfind('/');
  std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  // The lock on the directory serialises processes that find the same stale socket: one must not
  // replace the fresh socket of another.
  Fd directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid()) (void)::flock(directory.get(), LOCK_EX);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno_error("cannot make a socket", errno);
  // The socket file gets the descriptor's mode, so that no other user can connect even for a
  // moment.
  ::fchmod(fd.get(), 0600);
  RT_TRY(bind_unix(fd.get(), address, path));
  if (::listen(fd.get(), kBacklog) != 0) return errno_error("cannot listen on " + path, errno);
  return fd.release();
}

}  // namespace

Result<int> listen_on(const Address& address) {
  return address.kind == Address::Kind::kUnix ? listen_unix(address.path)
                                              : listen_tcp(address, "--port");
}

Result<int> listen_on_port(const std::string& host, int port, const char* option) {
  return listen_tcp(Address::tcp(host, port), option);
}

}  // namespace rt::net
