// The node's object store as its node-manager knows it: told of dead owners, and its loss is the
// node's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/config/settings.h"
#include "common/proto/object_store.pb.h"
#include "common/rpc/client.h"
#include "daemons/node_manager/service/options.h"

namespace rt::node {

// Bytes the node's store holds. Blocks: for main(), before there is a loop. The store may start at
// the same time: it is tried for connect_timeout_ms.
Result<int64_t> ask_store_capacity(const NodeManagerOptions& options);

class StoreLink {
 public:
  // `on_lost` is called once: it could not be reached within connect_timeout_ms, or the connection
  // broke.
  StoreLink(net::Loop& loop, const Settings& settings, std::string socket_path, rpc::Identity me,
            std::function<void(const Error&)> on_lost);
  ~StoreLink();

  void start();
  // Kept until the store is connected.
  void owners_gone(const proto::OwnersGone& gone);
  // Capacity and used only.
  void get_stats(std::function<void(Result<proto::StoreStats>)> done);

 private:
  void attempt();

  net::Loop& loop_;
  const Settings& settings_;
  std::string socket_path_;
  rpc::Identity me_;
  std::function<void(const Error&)> on_lost_;
  std::shared_ptr<rpc::Connection> connection_;
  proto::OwnersGone early_;
  int64_t started_us_ = 0;
  net::Loop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
