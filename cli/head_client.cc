#include "cli/head_client.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/launch/launch.h"
#include "common/net/address.h"

namespace rt::cli {

Result<std::string> client_token() {
  auto token = launch::auth_token(false);
  if (!token && token.error().code == Code::kNotFound) return std::string();
  if (!token)
    // Not kInvalid, which commands report as a usage error: the command line is not at fault.
    return make_error(Code::kUnauthenticated, token.error().message);
  return token;
}

Result<Head> connect_head(const std::string& option, int64_t timeout_us) {
  Head head;
  RT_ASSIGN(head.address, launch::resolve_address(option));
  RT_ASSIGN(auto address, net::Address::parse(head.address));
  rpc::Identity me;
  me.role = "client";
  RT_ASSIGN(me.token, client_token());
  RT_ASSIGN(head.client, rpc::SyncClient::connect({.address = address}, me,
                                                  std::min(timeout_us, kConnectTimeoutUs)));
  const rpc::Peer& peer = head.client->connection()->peer();
  if (peer.role != "head") {
    return make_error(Code::kUnavailable,
                      fmt::format("{} is not the head's address but a {}'s: give the one `{} start "
                                  "--head` printed (port 6379 by default)",
                                  head.address, peer.role == "node_manager" ? "node" : peer.role,
                                  program_name()));
  }
  return head;
}

Result<std::unique_ptr<rpc::SyncClient>> connect_node(const proto::Node& node) {
  rpc::Identity me;
  me.role = "client";
  RT_ASSIGN(me.token, client_token());
  return rpc::SyncClient::connect({.address = net::Address::tcp(node.ip(), node.port())}, me,
                                  kConnectTimeoutUs);
}

}  // namespace rt::cli
