// Connections to the stores of other nodes, through their front doors. Made on first use and kept.
// Threads: the loop's. Failure: a connection that breaks is forgotten; the next use connects again.
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

  // `ready` may be called before get() returns. kResourceExhausted when too many wait for the same
  // peer.
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
  std::map<std::string, Peer> peers_;  // by "ip:port"
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // callbacks that come after us see it gone
};

}  // namespace rt::store
