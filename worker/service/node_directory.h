// The nodes of the cluster as the head tells of them, and the connections to their node-managers.
// The one to this node's node-manager is made by the start of the process and is its life. The
// others are opened when somebody first asks for them, and kept.
//
// All functions passed in are called with the worker's mutex held.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "common/base/ids.h"
#include "common/net/loop.h"
#include "common/proto/head.pb.h"
#include "common/rpc/connection.h"
#include "common/rpc/dialer.h"
#include "worker/core/scheduling_class.h"
#include "worker/service/lock.h"
#include "worker/service/self.h"

namespace rt::worker {

class NodeDirectory {
 public:
  struct Hooks {
    // A connection to another node was made and needs its services.
    std::function<void(const NodeKey& node, rpc::Connection&)> opened;
    // The node cannot be reached any more.
    std::function<void(const NodeKey& node)> gone;
  };

  // All references must outlive this object.
  NodeDirectory(net::Loop& loop, const Options& options, const Context& context, const Self& self,
                Hooks hooks);

  // The connection to this node's node-manager: null before it is made and after close().
  const std::shared_ptr<rpc::Connection>& local() const REQUIRES(worker_mutex) { return local_; }
  void set_local(std::shared_ptr<rpc::Connection> connection) REQUIRES(worker_mutex) {
    local_ = std::move(connection);
  }
  bool is_local_open() const REQUIRES(worker_mutex) { return local_ && local_->is_open(); }

  // Whether this process is registered there, and was not told that it is gone. For any thread.
  bool is_registered() const { return registered_; }
  void set_registered(bool registered) REQUIRES(worker_mutex) { registered_ = registered; }

  NodeKey key_of(const NodeId& node) const REQUIRES(worker_mutex) {
    return node == context_.node_id ? NodeKey::nil() : node;
  }
  // Calls `done` with the connection to a node-manager, at once or when it has been made or has
  // failed. A nil `node` means this one.
  void with(const NodeKey& node, rpc::WithConnection done) REQUIRES(worker_mutex);
  // Reports the node as gone after a moment, once for any number of calls: when it has just died,
  // others may not know of that yet, and many may find out at the same time.
  void report_gone_soon(const NodeKey& node) REQUIRES(worker_mutex);

  // A node that is alive.
  void add(const proto::Node& node) REQUIRES(worker_mutex) {
    table_[NodeId::from_binary(node.node_id())] = node;
  }
  // News of the head: a node that is alive, or has died.
  void update(const proto::Node& node) REQUIRES(worker_mutex);
  const std::unordered_map<NodeId, proto::Node>& table() const REQUIRES(worker_mutex) {
    return table_;
  }
  // Null when the node is not known, or not any more.
  const proto::Node* find(const NodeId& id) const REQUIRES(worker_mutex) {
    auto known = table_.find(id);
    return known == table_.end() ? nullptr : &known->second;
  }

  void close() REQUIRES(worker_mutex);

 private:
  net::Loop& loop_;
  const Context& context_;
  const Self& self_;
  const Hooks hooks_;
  std::shared_ptr<rpc::Connection> local_ GUARDED_BY(worker_mutex);
  std::atomic<bool> registered_{false};
  rpc::Dialer<NodeId> dialer_ GUARDED_BY(worker_mutex);
  std::unordered_map<NodeId, std::shared_ptr<rpc::Connection>> others_ GUARDED_BY(worker_mutex);
  // A timer will report that these are gone.
  std::unordered_set<NodeId> gone_soon_ GUARDED_BY(worker_mutex);
  std::unordered_map<NodeId, proto::Node> table_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
