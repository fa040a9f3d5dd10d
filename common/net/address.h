// Addresses that processes listen on, and blocking socket helpers for start-up code.
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
  int port = 0;      // kTcp; 0: any free port when listening
  // kUnix: the path may be longer than sockaddr_un allows; it is reached through /proc/self/fd
  // then.
  std::string path;

  static Address tcp(std::string host, int port) { return {Kind::kTcp, std::move(host), port, {}}; }
  static Address unix_socket(std::string path) { return {Kind::kUnix, {}, 0, std::move(path)}; }
  // Parses "HOST:PORT", "[v6]:PORT" or "unix:PATH". kInvalid says what is wrong with the text.
  static Result<Address> parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const Address&, const Address&) = default;
};

// The address by which other machines reach this one. `peer` is the host of a head to join, or
// empty; a name is resolved, which may block. Tried in this order: the source address of the route
// to `peer`, unless it is a loopback address; the source address of the default route; the address
// of an interface that is up; 127.0.0.1. Connects to nothing.
std::string detect_node_ip(const std::string& peer = "");
// Whether this machine has the address `ip`. False when `ip` is not an IP literal.
bool is_of_this_machine(const std::string& ip);

// Makes a listening socket. The descriptor is non-blocking and close-on-exec, and belongs to the
// caller. An address that is in use is kIo, with a message that names cause and remedy.
Result<int> listen_on(const Address& address);
// The port of a bound TCP socket; kInvalid for any other descriptor.
Result<int> bound_port(int fd);

// Passes descriptors over a connected Unix socket (SCM_RIGHTS), at most eight, together with
// `data`, which holds at least one byte. Waits up to ten seconds for a receiver that does not read
// (kTimeout). The descriptors stay the caller's.
Status send_with_fds(int socket, std::string_view data, const int* fds, int count);
struct ReceivedFds {
  std::string data;
  std::vector<int> fds;  // They are close-on-exec; the caller closes them.
};
// Waits for one message, up to `timeout_us` (negative: no limit). kTimeout when none came,
// kUnavailable when the sender closed the connection.
Result<ReceivedFds> receive_with_fds(int socket, size_t max_bytes, int64_t timeout_us);

}  // namespace rt::net
