// Socket addresses and socket options, for both loops and for start-up code that has a bare
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
  // Directory through which a long Unix path is reached. It must stay open until bind() or
  // connect() is done.
  Fd directory;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// kInvalid for a path that cannot be a socket; kIo when the directory of a long path cannot be
// opened.
Result<SockAddr> unix_sockaddr(const std::string& path);
// Fills in `out` from an IPv4 or IPv6 literal or "localhost", without the resolver. False for any
// other host.
bool literal_sockaddr(const std::string& host, int port, SockAddr& out);
// Asks the resolver, which may block. With `passive` the addresses are for bind(), and an empty
// host means every interface. kUnavailable when the host is not found; never an empty list.
Result<std::vector<SockAddr>> resolve(const std::string& host, int port, bool passive);

bool is_unix_socket(int fd);
Address local_address_of(int fd);
// "10.0.0.2:4242"; "unix" for Unix sockets; "unknown" without a peer.
std::string peer_name_of(int fd);
// Makes a connected socket non-blocking and close-on-exec, and sets TCP_NODELAY and keep-alive
// probes on TCP.
void prepare_connected(int fd);

}  // namespace rt::net
