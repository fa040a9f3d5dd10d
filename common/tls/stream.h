// A net::Stream that speaks TLS over another one.
#pragma once

#include <functional>
#include <memory>

#include "common/net/loop.h"
#include "common/tls/tls.h"

namespace rt::tls {

struct PlainText {
  // Of a server, for a peer that begins in plain text: gets a descriptor of the socket, to keep,
  // over which it may be told so. The stream is closed then.
  std::function<void(int fd)> refuse;
  // Of a client: set when the other side answers in plain text, which then goes through as it is.
  // It may say why it refuses, and nothing else of it is to be believed.
  std::shared_ptr<bool> answered;
};

// Everything on `loop`. What is written before the handshake is done waits for it. A handshake that
// fails ends the stream with kUnauthenticated.
std::unique_ptr<net::Stream> make_stream(net::Loop& loop, std::unique_ptr<net::Stream> socket,
                                         std::unique_ptr<Session> session, PlainText plain);

}  // namespace rt::tls
