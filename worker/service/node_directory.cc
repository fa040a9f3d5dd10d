#include "worker/service/node_directory.h"

#include <fmt/core.h>

#include <utility>

namespace rt::worker {

NodeDirectory::NodeDirectory(net::Loop& loop, const Options& options, const Context& context,
                             const Self& self, Hooks hooks)
    : loop_(loop),
      context_(context),
      self_(self),
      hooks_(std::move(hooks)),
      dialer_(loop, options.settings.connect_timeout_ms * 1000,
              [this](const NodeId& node, const std::shared_ptr<rpc::Connection>& connection) {
                assert_locked();
                others_[node] = connection;
                hooks_.opened(node, *connection);
                connection->set_closed_handler([this, node](const Error&) {
                  assert_locked();
                  others_.erase(node);
                  hooks_.gone(node);
                });
                return connection;
              }) {}

void NodeDirectory::with(const NodeKey& node, rpc::WithConnection done) {
  if (node.is_nil() || node == context_.node_id) {
    if (is_local_open()) return done(local_);
    return done(
        make_error(Code::kUnavailable, "the connection to this node's node-manager is lost"));
  }
  if (auto other = others_.find(node); other != others_.end() && other->second->is_open())
    return done(other->second);
  const proto::Node* known = find(node);
  if (!known)
    return done(make_error(Code::kNodeDied,
                           fmt::format("node {} is not part of the cluster any more", node.hex())));
  rpc::Target target{net::Address::tcp(known->ip(), known->port()), "self", ""};
  dialer_.dial(node, target, self_.identity(), std::move(done));
}

void NodeDirectory::report_gone_soon(const NodeKey& node) {
  constexpr int64_t kPauseUs = 50'000;
  if (!gone_soon_.insert(node).second) return;
  loop_.run_after(kPauseUs, [this, node] {
    assert_locked();
    gone_soon_.erase(node);
    hooks_.gone(node);
  });
}

void NodeDirectory::update(const proto::Node& node) {
  if (node.alive()) {
    add(node);
  } else {
    table_.erase(NodeId::from_binary(node.node_id()));
  }
}

void NodeDirectory::close() {
  others_.clear();
  gone_soon_.clear();
  dialer_.close();
  if (local_) local_->set_closed_handler(nullptr);
  local_.reset();
}

}  // namespace rt::worker
