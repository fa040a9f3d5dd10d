// A blocking connection to the head, as every command but start and stop needs it.
#pragma once

#include <memory>
#include <string>

#include "cli/command_line.h"
#include "common/proto/head.pb.h"
#include "common/rpc/client.h"

namespace rt::cli {

struct Head {
  std::string address;
  std::unique_ptr<rpc::SyncClient> client;
};
// `address`: HOST:PORT, "auto" or empty (RAY_ADDRESS, then the address file). Errors name the
// address and what to do.
Result<Head> connect_head(const std::string& address);
// The node-manager of `node`.
Result<std::unique_ptr<rpc::SyncClient>> connect_node(const proto::Node& node);
// The user's token; empty without one: the head may still let us in (RAY_AUTH_MODE=disabled there);
// if not, its answer says what is missing.
Result<std::string> client_token();

}  // namespace rt::cli
