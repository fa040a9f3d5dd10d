// The nodes of the cluster as the head tells of them, and the connections to their node-managers.
// The one to this node's node-manager is made by the start of the process and is its life. The
// others are opened when somebody first asks for them, and kept.
//
// All methods are called with the worker's mutex held, except is_registered(), and so are all
// functions passed in.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/net/loop.h"
#include "common/proto/head.pb.h"
#include "common/rpc/connection.h"
#include "worker/core/scheduling_class.h"
#include "worker/service/self.h"

namespace rt::worker {

class Nodes {
 public:
  using WithConnection = std::function<void(Result<std::shared_ptr<rpc::Connection>>)>;
  struct Hooks {
    // A connection to another node was made and needs its services.
    std::function<void(const NodeKey& node, rpc::Connection&)> opened;
    // The node cannot be reached any more.
    std::function<void(const NodeKey& node)> gone;
  };

  // All references must outlive this object.
  Nodes(net::Loop& loop, const Options& options, const Context& context, const Self& self,
        Hooks hooks)
      : loop_(loop), options_(options), context_(context), self_(self), hooks_(std::move(hooks)) {}

  // The connection to this node's node-manager: null before it is made and after close().
  const std::shared_ptr<rpc::Connection>& local() const { return local_; }
  void set_local(std::shared_ptr<rpc::Connection> connection) { local_ = std::move(connection); }
  bool is_local_open() const { return local_ && local_->is_open(); }

  // Whether this process is registered there, and was not told that it is gone. For any thread.
  bool is_registered() const { return registered_; }
  void set_registered(bool registered) { registered_ = registered; }

  // Calls `done` with the connection to a node-manager, at once or when it has been made or has
  // failed. A nil `node` means this one.
  void with(const NodeKey& node, WithConnection done);
  // Reports the node as gone after a moment, once for any number of calls: when it has just died,
  // others may not know of that yet, and many may find out at the same time.
  void report_gone_soon(const NodeKey& node);

  // A node that is alive.
  void add(const proto::Node& node) { table_[NodeId::from_binary(node.node_id())] = node; }
  // News of the head: a node that is alive, or has died.
  void update(const proto::Node& node);
  const std::unordered_map<NodeId, proto::Node>& table() const { return table_; }
  // Null when the node is not known, or not any more.
  const proto::Node* find(const NodeId& id) const {
    auto known = table_.find(id);
    return known == table_.end() ? nullptr : &known->second;
  }

  void close();

 private:
  struct Peer {
    std::shared_ptr<rpc::Connection> connection;
    std::vector<WithConnection> waiters;
    bool gone_soon = false;  // A timer will report that the node is gone.
  };

  net::Loop& loop_;
  const Options& options_;
  const Context& context_;
  const Self& self_;
  const Hooks hooks_;
  std::shared_ptr<rpc::Connection> local_;
  std::atomic<bool> registered_{false};
  std::unordered_map<NodeId, Peer> peers_;
  std::unordered_map<NodeId, proto::Node> table_;
};

}  // namespace rt::worker
