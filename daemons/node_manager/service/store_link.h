// The node-manager's connection to the object store of its node. The store must free the objects
// of dead owners, and its loss ends the node. A store that hangs is told to everyone instead
// (core/store_watch.h): it may go on, and its objects are lost with the node.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/config/settings.h"
#include "common/net/alarm.h"
#include "common/proto/object_store.pb.h"
#include "common/rpc/client.h"
#include "daemons/node_manager/core/store_waits.h"
#include "daemons/node_manager/core/store_watch.h"
#include "daemons/node_manager/service/options.h"

namespace rt::node {

// Returns the capacity of the node's store in bytes. Blocks, so it is only for main(), before the
// loop runs. The store may still be starting: attempts go on for connect_timeout_ms.
Result<int64_t> ask_store_capacity(const NodeManagerOptions& options);

class StoreLink {
 public:
  struct Events {
    // Called once, with the store's first answer: used() and pid() are known from then on.
    std::function<void()> on_ready;
    // Called once, if the store cannot be reached within connect_timeout_ms or when the connection
    // breaks.
    std::function<void(const Error&)> on_lost;
    std::function<void()> on_used;     // used() or waits() has changed
    std::function<void()> on_problem;  // problem() has changed
    // Something waits for long for room in the store, as the driver of the job should know.
    std::function<void(const proto::LeaseNotice&)> on_late;
  };
  // The options must outlive the link.
  StoreLink(net::Loop& loop, const NodeManagerOptions& options, rpc::Identity me, Events events);
  ~StoreLink();

  void start();
  // Tells the store to free the objects of these owners and jobs. Queued until it is connected.
  void owners_gone(const proto::OwnersGone& gone);
  // Calls `done` from the loop, or at once with an error while the store is not connected or hangs.
  void get_stats(std::function<void(Result<proto::StoreStats>)> done);
  // Bytes of objects in the store, and its process id, as of its last answer; 0 before on_ready.
  int64_t used() const { return used_; }
  int pid() const { return pid_; }
  // Null when nothing waits for room in the store.
  const proto::StoreWaits* waits() const { return waits_.waits(); }
  // Empty, or a sentence that says since when the store hangs and what to do.
  std::string problem() const;

 private:
  void attempt();
  void act(const StoreWatch::Turn& turn);
  void take(const proto::StoreStats& stats);

  net::Loop& loop_;
  const Settings& settings_;
  std::string socket_path_;
  rpc::Identity me_;
  Events events_;
  StoreWatch watch_;
  StoreWaits waits_;
  std::shared_ptr<rpc::Connection> connection_;
  proto::OwnersGone early_;  // owners_gone() before the store was connected
  int64_t started_us_ = 0;
  int64_t used_ = 0;
  int pid_ = 0;
  net::Alarm attempt_alarm_, watch_alarm_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
