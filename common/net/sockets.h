// sockaddr handling and socket options: what both loops stand on, and start-up code that has a bare
// descriptor.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/status.h"
#include "common/net/address.h"

namespace rt::net {

struct SockAddr {
  sockaddr_storage storage{};
  socklen_t size = 0;
  // Long Unix paths are reached through this directory; it stays open until bind() or connect() is
  // done.
  Fd directory;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<SockAddr> unix_sockaddr(const std::string& path);
// False when `host` is not an IPv4 or IPv6 literal, or "localhost".
bool literal_sockaddr(const std::string& host, int port, SockAddr& out);
// Asks the resolver: blocks. `passive`: for bind, where an empty host means every interface.
Result<std::vector<SockAddr>> resolve(const std::string& host, int port, bool passive);

bool is_unix_socket(int fd);
Address local_address_of(int fd);
std::string peer_name_of(int fd);
// Non-blocking, close-on-exec; TCP_NODELAY and keep-alive probes where it is TCP.
void prepare_connected(int fd);

}  // namespace rt::net
