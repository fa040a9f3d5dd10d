// Where something listens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace rt::net {

struct Address {
  enum class Kind { kTcp, kUnix };
  Kind kind = Kind::kTcp;
  std::string host;  // kTcp: IPv4 or IPv6 literal, or a name
  int port = 0;      // kTcp; 0 = any free port when listening
  std::string
      path;  // kUnix; may be longer than sockaddr_un allows (reached through /proc/self/fd then)

  static Address tcp(std::string host, int port) { return {Kind::kTcp, std::move(host), port, {}}; }
  static Address unix_socket(std::string path) { return {Kind::kUnix, {}, 0, std::move(path)}; }
  // "HOST:PORT", "[v6]:PORT" or "unix:PATH". kInvalid names what is wrong with the text.
  static Result<Address> parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const Address&, const Address&) = default;
};

// The address other machines reach this one by: the source address of the route to `peer` (the head
// to join; asks the resolver where it is a name), of the default route when that is none or
// loopback, that of an interface that is up, else 127.0.0.1. Connects to nothing.
std::string detect_node_ip(const std::string& peer = "");
// False when no interface of this machine has the IP literal.
bool is_of_this_machine(const std::string& ip);

// Blocking helpers for start-up code. The returned descriptors are close-on-exec and belong to the
// caller.
Result<int> listen_on(
    const Address& address);  // kIo "port 6379 is in use ..." names the cause and remedy
Result<int> bound_port(int fd);

// SCM_RIGHTS over a connected Unix socket. `data` holds at least one byte.
Status send_with_fds(int socket, std::string_view data, const int* fds, int count);
struct ReceivedFds {
  std::string data;
  std::vector<int> fds;  // close-on-exec; the caller closes them
};
Result<ReceivedFds> receive_with_fds(int socket, size_t max_bytes, int64_t timeout_us);

}  // namespace rt::net
