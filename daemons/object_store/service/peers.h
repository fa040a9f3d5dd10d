// Connections to the stores of other nodes through the nodes' TCP ports. They are made on first
// use and kept. A connection that breaks is forgotten, and the next use connects again. Loop
// thread only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/net/loop.h"
#include "common/rpc/connection.h"
#include "common/rpc/dialer.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class Peers {
 public:
  Peers(net::Loop& loop, rpc::Identity identity, int64_t connect_timeout_us);
  ~Peers();

  // Calls `ready` with a connection or why there is none, possibly before get() returns. Fails
  // with kResourceExhausted if too many calls wait for the same peer.
  void get(const Source& peer, rpc::WithConnection ready);
  void set_identity(rpc::Identity identity) { identity_ = std::move(identity); }

 private:
  rpc::Identity identity_;
  // Both by "ip:port".
  rpc::Dialer<std::string> dialer_;
  std::map<std::string, std::shared_ptr<rpc::Connection>> connections_;
};

}  // namespace rt::store
