// The server's side of a WebSocket connection (RFC 6455). It blocks, and is used by a thread of its
// own. Boost.Beast handles the frames. websocket_accept.h begins one.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/net/channel.h"

namespace rt::net {

class WebSocket {
 public:
  struct Impl;
  explicit WebSocket(std::unique_ptr<Impl> impl);  // for accept_websocket()
  ~WebSocket();

  // Sends one text frame, in which bytes that are not UTF-8 are replaced. False: the peer is gone.
  bool send_text(std::string_view text);
  // Waits for `ms` milliseconds, answers pings meanwhile and drops what the peer sends. False at
  // once when the peer closes or is gone.
  bool wait(int64_t ms);
  // Closes with status 1000 (normal).
  void close();
  // Lets the connection end without a closing frame, and close() does nothing any more: the peer
  // sees that what it was sent is not all.
  void break_off();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::net
