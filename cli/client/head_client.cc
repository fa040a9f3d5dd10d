#include "cli/client/head_client.h"

#include <fmt/core.h>

#include "common/net/address.h"
#include "launch/node/launch.h"

namespace rt::cli {
namespace {

// Makes the error of a connection. A server that refuses a token does not know where this program
// has the token from, and can only say how a token is given.
Error with_token_source(Error error) {
  const size_t refused = error.message.find(rpc::kWrongToken);
  if (refused != std::string::npos)
    error.message = fmt::format(
        "{}the token in {} is not the one of this cluster: `{} "
        "get-auth-token` prints that on the head's machine",
        error.message.substr(0, refused), launch::auth_token_source(), program_name());
  return error;
}

Result<std::unique_ptr<rpc::SyncClient>> connect_to(const net::Address& address,
                                                    int64_t timeout_us) {
  rpc::Identity me;
  me.role = "client";
  RT_ASSIGN(me.token, client_token());
  auto client = rpc::SyncClient::connect({.address = address}, me, timeout_us);
  if (!client) return with_token_source(client.error());
  return client;
}

}  // namespace

Result<std::string> client_token() {
  auto token = launch::auth_token(false);
  if (!token && token.error().code == Code::kNotFound) return std::string();
  if (!token)
    // The code is not kInvalid, which commands report as a usage error: the command line is not at
    // fault.
    return make_error(Code::kUnauthenticated, token.error().message);
  return token;
}

Result<Head> connect_head(const std::string& option, int64_t timeout_us) {
  Head head;
  RT_ASSIGN(head.address, launch::resolve_address(option));
  RT_ASSIGN(auto address, net::Address::parse(head.address));
  RT_ASSIGN(head.client, connect_to(address, timeout_us));
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
  return connect_to(net::Address::tcp(node.ip(), node.port()), kConnectTimeoutUs);
}

}  // namespace rt::cli
