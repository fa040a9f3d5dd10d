// Connections to the stores of other nodes through the nodes' TCP ports. They are made on first
// use and kept. A connection that breaks is forgotten, and the next use connects again. Loop
// thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/net/loop.h"
#include "common/rpc/connection.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class Peers {
 public:
  using Ready = std::function<void(Result<std::shared_ptr<rpc::Connection>>)>;
  Peers(net::Loop& loop, rpc::Identity identity, int64_t connect_timeout_us);
  ~Peers();

  // Calls `ready` with a connection or why there is none, possibly before get() returns. Fails
  // with kResourceExhausted if too many calls wait for the same peer.
  void get(const Source& peer, Ready ready);
  void set_identity(rpc::Identity identity) { identity_ = std::move(identity); }

 private:
  struct Peer {
    std::shared_ptr<rpc::Connection> connection;
    std::vector<Ready> waiting;
  };
  void connected(const std::string& key, Result<std::shared_ptr<rpc::Connection>> connection);

  net::Loop& loop_;
  rpc::Identity identity_;
  const int64_t connect_timeout_us_;
  std::map<std::string, Peer> peers_;  // By "ip:port".
  // Callbacks that run after the destructor see it expired.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::store
