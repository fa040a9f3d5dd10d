// The server's side of a WebSocket conversation (RFC 6455), blocking, in a thread of its own.
// Boost.Beast does the frames.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/net/channel.h"

namespace rt::net {

class WebSocket {
 public:
  // Whether the head of an HTTP request asks for one; then `field` is called for each header.
  static bool is_upgrade(const std::string& head, std::string* method, std::string* target,
                         const std::function<void(std::string name, std::string value)>& field);
  // Answers the handshake. `received`: what was read from the socket so far, beginning with the
  // request's head. Each operation may wait `timeout_ms`.
  static Result<std::unique_ptr<WebSocket>> accept(std::unique_ptr<Channel> channel,
                                                   const std::string& received, int64_t timeout_ms);
  ~WebSocket();

  // One text frame; bytes that are not UTF-8 are replaced. False: the other side is gone.
  bool send_text(std::string_view text);
  // Answers pings meanwhile; what it says is dropped. False at once when the other side closes or
  // is gone.
  bool wait(int64_t ms);
  void close();  // normally, 1000

 private:
  struct Impl;
  explicit WebSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::net
