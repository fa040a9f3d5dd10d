// The server's side of a TLS conversation, for a thread of its own.
#pragma once

#include <memory>

#include "common/base/fd.h"
#include "common/base/status.h"
#include "common/net/channel.h"
#include "common/tls/tls.h"

namespace rt::tls {

// Does the handshake, for up to `timeout_ms`. `fd` is non-blocking; it is taken on success and
// stays the caller's on an error. kProtocol: the peer speaks plain text, of which nothing was read.
Result<std::unique_ptr<net::Channel>> accept_channel(Fd& fd, const Tls& tls, int64_t timeout_ms);

}  // namespace rt::tls
