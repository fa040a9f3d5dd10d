// Private to common/rpc: what hellos say, and who is let in.
#pragma once

#include "common/proto/rpc.pb.h"
#include "common/rpc/connection.h"

namespace rt::rpc {

proto::Hello make_hello(const Identity& me);
proto::HelloReply make_hello_reply(const Identity& me);
// The server's decision. Messages name cause and remedy and reveal nothing of the cluster before
// the token was right.
Status check_hello(const Identity& me, const proto::Hello& hello, bool is_unix);
// The client's.
Status check_hello_reply(const Identity& me, const proto::HelloReply& reply);
// Compares every byte whatever the outcome.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace rt::rpc
