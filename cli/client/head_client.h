// Blocking connections to the head and to node-managers, with the user's token.
#pragma once

#include <memory>
#include <string>

#include "cli/terminal/command_line.h"
#include "common/proto/head.pb.h"
#include "common/rpc/client.h"

namespace rt::cli {

// The limit for connection and hello together if the user gives none, so that a head that is gone
// or does not answer is reported within three seconds.
inline constexpr int64_t kConnectTimeoutUs = 2'500'000;

struct Head {
  std::string address;
  std::unique_ptr<rpc::SyncClient> client;
};
// `address` is HOST:PORT, "auto" or empty (then RAY_ADDRESS, else the address file of this
// machine's temp root). Fails within `timeout_us` when nothing answers; the message names the
// address and what to do about it.
Result<Head> connect_head(const std::string& address, int64_t timeout_us = kConnectTimeoutUs);
// Connects to the node-manager of `node`.
Result<std::unique_ptr<rpc::SyncClient>> connect_node(const proto::Node& node);
// The user's token, or an empty string when there is none. An empty token is no error here: the
// head may run with RAY_AUTH_MODE=disabled, and if it does not, its answer says what is missing.
Result<std::string> client_token();

}  // namespace rt::cli
