#include "worker/service/nodes.h"

#include <fmt/core.h>

#include <utility>

namespace rt::worker {

void Nodes::with(const NodeKey& node, WithConnection done) {
  if (node.is_nil() || node == context_.node_id) {
    if (is_local_open()) return done(local_);
    return done(
        make_error(Code::kUnavailable, "the connection to this node's node-manager is lost"));
  }
  Peer& peer = peers_[node];
  if (peer.connection && peer.connection->is_open()) return done(peer.connection);
  const proto::Node* known = find(node);
  if (!known)
    return done(make_error(Code::kNodeDied,
                           fmt::format("node {} is not part of the cluster any more", node.hex())));
  peer.waiters.push_back(std::move(done));
  if (peer.waiters.size() > 1) return;
  rpc::Target target{net::Address::tcp(known->ip(), known->port()), "self", ""};
  rpc::connect(loop_, target, self_.identity(), options_.settings.connect_timeout_ms * 1000,
               [this, node](Result<std::shared_ptr<rpc::Connection>> connection) {
                 assert_locked();
                 Peer& peer = peers_[node];
                 std::vector<WithConnection> waiters = std::exchange(peer.waiters, {});
                 if (connection) {
                   peer.connection = *connection;
                   hooks_.opened(node, **connection);
                   (*connection)->set_closed_handler([this, node](const Error&) {
                     assert_locked();
                     peers_[node].connection.reset();
                     hooks_.gone(node);
                   });
                 }
                 for (WithConnection& waiter : waiters) waiter(connection);
               });
}

void Nodes::report_gone_soon(const NodeKey& node) {
  constexpr int64_t kPauseUs = 50'000;
  if (std::exchange(peers_[node].gone_soon, true)) return;
  loop_.run_after(kPauseUs, [this, node] {
    assert_locked();
    peers_[node].gone_soon = false;
    hooks_.gone(node);
  });
}

void Nodes::update(const proto::Node& node) {
  if (node.alive()) {
    add(node);
  } else {
    table_.erase(NodeId::from_binary(node.node_id()));
  }
}

void Nodes::close() {
  peers_.clear();
  if (local_) local_->set_closed_handler(nullptr);
  local_.reset();
}

}  // namespace rt::worker
