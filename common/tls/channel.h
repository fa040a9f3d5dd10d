// The server's side of a TLS conversation that has a thread of its own.
#pragma once

#include <memory>

#include "common/base/fd.h"
#include "common/base/status.h"
#include "common/net/channel.h"
#include "common/tls/tls.h"

namespace rt::tls {

// Does the handshake. `fd` is non-blocking and stays the caller's when it returns an error;
// kProtocol: the other side speaks plain text, and none of it was read.
Result<std::unique_ptr<net::Channel>> accept_channel(Fd& fd, const Tls& tls, int64_t timeout_ms);

}  // namespace rt::tls
