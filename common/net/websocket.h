// The server's side of a WebSocket connection (RFC 6455). It blocks, and is used by a thread of its
// own. Boost.Beast handles the frames.
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
  // Whether the head of an HTTP request asks for a WebSocket. If so, sets `method` and `target` and
  // calls `field` for each header.
  static bool is_upgrade(const std::string& head, std::string* method, std::string* target,
                         const std::function<void(std::string name, std::string value)>& field);
  // Answers the handshake; kProtocol when it fails. `received` holds what was read from the socket
  // so far, beginning with the request's head. Each later operation may wait `timeout_ms` as well.
  static Result<std::unique_ptr<WebSocket>> accept(std::unique_ptr<Channel> channel,
                                                   const std::string& received, int64_t timeout_ms);
  ~WebSocket();

  // Sends one text frame, in which bytes that are not UTF-8 are replaced. False: the peer is gone.
  bool send_text(std::string_view text);
  // Waits for `ms` milliseconds, answers pings meanwhile and drops what the peer sends. False at
  // once when the peer closes or is gone.
  bool wait(int64_t ms);
  // Closes with status 1000 (normal).
  void close();

 private:
  struct Impl;
  explicit WebSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::net
