#include "worker/find_node.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>

#include "common/net/probe.h"
#include "common/proto/head.pb.h"
#include "common/rpc/client.h"

namespace rt::worker {
namespace {

// Whether the node runs on this machine: its socket exists here, and a process listens on it.
bool is_local(const proto::Node& node) {
  return !node.node_manager_socket().empty() &&
         net::is_listening(net::Address::unix_socket(node.node_manager_socket()), 0) ==
             net::Listening::kYes;
}

// Whether the node belongs to another user, here or on another machine where that user has the
// same directory.
bool is_denied(const proto::Node& node) {
  return !node.node_manager_socket().empty() &&
         access(node.node_manager_socket().c_str(), W_OK) != 0 && errno == EACCES;
}

Error no_node(const std::string& head_address, const proto::GetNodesReply& reply) {
  for (const auto& node : reply.nodes()) {
    if (!is_denied(node)) continue;
    return make_error(
        Code::kNotFound,
        fmt::format(
            "the cluster at {0} has no node on this machine that this user may use: {1} is another "
            "user's (permission denied). "
            "Start a node of your own with `rayctl start --address={0}`, or work as that user",
            head_address, node.node_manager_socket()));
  }
  return make_error(Code::kNotFound,
                    fmt::format("the cluster at {0} has no node on this machine: start one with "
                                "`rayctl start --address={0}`",
                                head_address));
}

}  // namespace

Result<proto::Node> find_local_node(const std::string& head_address, const std::string& token,
                                    int64_t timeout_us) {
  rpc::Target target;
  RT_ASSIGN(target.address, net::Address::parse(head_address));
  rpc::Identity me;
  me.role = "client";
  me.token = token;
  RT_ASSIGN(auto client, rpc::SyncClient::connect(target, me, timeout_us));
  if (client->connection()->peer().role != "head") {
    return make_error(Code::kNotFound,
                      fmt::format("{} is not the head's address but that of another process of a "
                                  "cluster: give the one `rayctl start --head` printed",
                                  head_address));
  }
  proto::GetNodesRequest request;
  request.set_alive_only(true);
  RT_ASSIGN(auto reply, client->call(&proto::HeadService::Stub::GetNodes, request, timeout_us));
  const proto::Node* found = nullptr;
  for (const auto& node : reply.nodes()) {
    if ((!found || (node.is_head() && !found->is_head())) && is_local(node)) found = &node;
  }
  if (!found) return no_node(head_address, reply);
  return *found;
}

}  // namespace rt::worker
