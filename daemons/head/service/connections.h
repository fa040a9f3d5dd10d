// The open connections of the head's peers, by the numbers under which the core knows them.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "common/rpc/connection.h"
#include "daemons/head/core/types.h"

namespace rt::head {

// Used in the loop's thread only.
class Connections {
 public:
  ConnId add(std::shared_ptr<rpc::Connection> connection) {
    const ConnId id = ++last_id_;
    ids_[connection.get()] = id;
    connections_[id] = std::move(connection);
    return id;
  }
  // Returns false if it has been removed already.
  bool remove(ConnId id) {
    auto it = connections_.find(id);
    if (it == connections_.end()) return false;
    ids_.erase(it->second.get());
    connections_.erase(it);
    return true;
  }
  // Returns 0 for a connection that has been removed.
  ConnId id_of(const rpc::Connection& connection) const {
    auto it = ids_.find(&connection);
    return it == ids_.end() ? 0 : it->second;
  }
  // Returns null when the connection is no longer open.
  std::shared_ptr<rpc::Connection> find(ConnId id) const {
    auto it = connections_.find(id);
    return it == connections_.end() || !it->second->is_open() ? nullptr : it->second;
  }
  size_t size() const { return connections_.size(); }
  // The bytes that wait to be sent to all of them.
  size_t queued_bytes() const {
    size_t queued = 0;
    for (const auto& [id, open] : connections_) queued += open->queued_bytes();
    return queued;
  }

 private:
  std::map<ConnId, std::shared_ptr<rpc::Connection>> connections_;
  std::unordered_map<const rpc::Connection*, ConnId> ids_;
  ConnId last_id_ = 0;
};

}  // namespace rt::head
