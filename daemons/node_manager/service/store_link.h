// The node-manager's connection to the object store of its node. The store must free the objects
// of dead owners, and its loss ends the node.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/config/settings.h"
#include "common/proto/object_store.pb.h"
#include "common/rpc/client.h"
#include "daemons/node_manager/service/options.h"

namespace rt::node {

// Returns the capacity of the node's store in bytes. Blocks, so it is only for main(), before the
// loop runs. The store may still be starting: attempts go on for connect_timeout_ms.
Result<int64_t> ask_store_capacity(const NodeManagerOptions& options);

class StoreLink {
 public:
  // `on_lost` is called once, if the store cannot be reached within connect_timeout_ms or when the
  // connection breaks.
  StoreLink(net::Loop& loop, const Settings& settings, std::string socket_path, rpc::Identity me,
            std::function<void(const Error&)> on_lost);
  ~StoreLink();

  void start();
  // Tells the store to free the objects of these owners and jobs. Queued until it is connected.
  void owners_gone(const proto::OwnersGone& gone);
  // Calls `done` from the loop, or at once with an error while the store is not connected.
  void get_stats(std::function<void(Result<proto::StoreStats>)> done);

 private:
  void attempt();

  net::Loop& loop_;
  const Settings& settings_;
  std::string socket_path_;
  rpc::Identity me_;
  std::function<void(const Error&)> on_lost_;
  std::shared_ptr<rpc::Connection> connection_;
  proto::OwnersGone early_;  // owners_gone() before the store was connected
  int64_t started_us_ = 0;
  net::Loop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
