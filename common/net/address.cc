#include "common/net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

#include "common/net/sockets.h"

namespace rt::net {
namespace {

Error bad_address(std::string_view text, std::string_view why) {
  return make_error(
      Code::kInvalid,
      fmt::format("'{}' is not an address: {} (expected HOST:PORT, [IPV6]:PORT or unix:PATH)", text,
                  why));
}

constexpr int kAnyPort = 53;

bool is_loopback(const std::string& host) { return host.starts_with("127.") || host == "::1"; }

// Connecting a datagram socket makes the kernel pick a route and thereby a source address; no
// packet is sent. Empty when there is no route.
std::string source_address(const SockAddr& to) {
  Fd fd(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() || ::connect(fd.get(), to.get(), to.size) != 0) return {};
  std::string host = local_address_of(fd.get()).host;
  return host == "0.0.0.0" || host == "::" ? std::string() : host;
}

// The first IPv4 address of an interface that is up, for networks without a default route. Empty
// when there is none.
std::string interface_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  std::string host;
  for (const ifaddrs* i = list; i != nullptr && host.empty(); i = i->ifa_next) {
    constexpr unsigned kUp = IFF_UP | IFF_RUNNING;
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET ||
        (i->ifa_flags & (kUp | IFF_LOOPBACK)) != kUp)
      continue;
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text,
              sizeof text);
    host = text;
  }
  ::freeifaddrs(list);
  return host;
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with("unix:")) {
    std::string_view path = text.substr(5);
    if (path.starts_with("//")) path.remove_prefix(2);
    if (path.empty()) return bad_address(text, "the path is missing");
    return unix_socket(std::string(path));
  }
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text, "the port is missing");
  std::string_view host = text.substr(0, colon);
  std::string_view port_text = text.substr(colon + 1);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return bad_address(text, "']' is missing");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad_address(text, "an IPv6 address is written in brackets");
  }
  if (host.empty()) return bad_address(text, "the host is missing");
  if (host.find_first_of(" \t\r\n/") != std::string_view::npos)
    return bad_address(text, "the host contains a character no host name has");
  int port = -1;
  auto [end, error] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
  if (error != std::errc() || end != port_text.data() + port_text.size() || port < 0 ||
      port > 65535) {
    return bad_address(text, "the port is not a number from 0 to 65535");
  }
  return tcp(std::string(host), port);
}

std::string Address::to_string() const {
  if (kind == Kind::kUnix) return "unix:" + path;
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

std::string detect_node_ip(const std::string& peer) {
  // A head that is reached by loopback is on this machine, which does not tell how other machines
  // reach this one.
  if (!peer.empty()) {
    auto addresses = resolve(peer, kAnyPort, /*passive=*/false);
    std::string host = addresses && !addresses->empty() ? source_address(addresses->front()) : "";
    if (!host.empty() && !is_loopback(host)) return host;
  }
  SockAddr anywhere;
  literal_sockaddr("8.8.8.8", kAnyPort, anywhere);
  std::string host = source_address(anywhere);
  if (host.empty()) host = interface_address();
  return host.empty() ? "127.0.0.1" : host;
}

bool is_of_this_machine(const std::string& ip) {
  SockAddr address;
  if (!literal_sockaddr(ip, 0, address)) return false;
  // Binding asks the kernel, which accepts more than the addresses of the interfaces: all of
  // 127.0.0.0/8, and routes of type local.
  Fd fd(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd.valid() &&
         (::bind(fd.get(), address.get(), address.size) == 0 || errno != EADDRNOTAVAIL);
}

Result<int> bound_port(int fd) {
  Address address = local_address_of(fd);
  if (address.kind != Address::Kind::kTcp || address.port == 0) {
    return make_error(Code::kInvalid, fmt::format("descriptor {} is not a bound TCP socket", fd));
  }
  return address.port;
}

}  // namespace rt::net
