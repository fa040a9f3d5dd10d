// A net::Stream that speaks TLS over another stream.
#pragma once

#include <functional>
#include <memory>

#include "common/net/loop.h"
#include "common/tls/tls.h"

namespace rt::tls {

// How to treat a peer that speaks plain text.
struct PlainText {
  // A server calls it when the peer begins in plain text, with a duplicate of the socket's
  // descriptor, which it owns and over which it may tell the peer why. The stream is closed then.
  std::function<void(int fd)> refuse;
  // For clients. Set when the server answers in plain text, which is passed on as it is. A server
  // may say that way why it refuses; nothing else that it says is to be believed.
  std::shared_ptr<bool> answered;
};

// Everything runs on `loop`. Bytes written before the handshake is done wait for it. A handshake
// that fails closes the stream with kUnauthenticated.
std::unique_ptr<net::Stream> make_stream(net::Loop& loop, std::unique_ptr<net::Stream> socket,
                                         std::unique_ptr<Session> session, PlainText plain);

}  // namespace rt::tls
