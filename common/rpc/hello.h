// Private to common/rpc: makes hellos and decides whom to let in.
#pragma once

#include "common/proto/rpc.pb.h"
#include "common/rpc/connection.h"

namespace rt::rpc {

proto::Hello make_hello(const Identity& me);
proto::HelloReply make_hello_reply(const Identity& me);
// The server's decision about a peer. The error's message names cause and remedy, and reveals
// nothing about the cluster before the token was right.
Status check_hello(const Identity& me, const proto::Hello& hello, bool is_unix);
// The client's decision about a server.
Status check_hello_reply(const Identity& me, const proto::HelloReply& reply);

}  // namespace rt::rpc
