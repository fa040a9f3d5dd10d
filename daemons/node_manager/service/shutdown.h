// The end of the node, for whatever reason: tells the head, the drivers and the processes of the
// node, and waits until these have ended. It also watches a node that is to leave once it is idle
// (Drain). Threads: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/net/alarm.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/drain_watch.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/options.h"
#include "daemons/node_manager/service/process_ends.h"
#include "daemons/node_manager/service/processes.h"
#include "daemons/node_manager/service/sessions.h"

namespace rt::node {

// Values of StopReason::grace_us.
inline constexpr int64_t kGentleStopUs = 2'000'000, kQuickStopUs = 250'000;

struct StopReason {
  proto::NodeDeath death_reason = proto::EXPECTED_TERMINATION;
  std::string message;
  Code failure = Code::kOk;          // the status on_stopped gets
  int64_t grace_us = kGentleStopUs;  // from SIGTERM to SIGKILL, for the processes of the node
};

inline StopReason failed_because(const std::string& why, Code code) {
  return {proto::UNEXPECTED_TERMINATION, why, code, kQuickStopUs};
}

// The store of a cluster that a driver started ends with it, and the node may notice that first:
// tasks that run have as long to clean up as at any other end of a cluster.
inline StopReason store_ended(const Error& why) {
  return {proto::UNEXPECTED_TERMINATION, why.message, Code::kUnavailable, kGentleStopUs};
}

class Shutdown {
 public:
  struct Events {
    // Called within stop(): nothing new is to be begun on this node.
    std::function<void(const std::string& why)> on_begin;
    std::function<void(const Status& how)> on_ended;
  };
  // `options` and `sessions` outlive this object.
  Shutdown(net::Loop& loop, const NodeManagerOptions& options, Sessions& sessions, Events events);
  ~Shutdown() { *alive_ = false; }

  // All of them outlive this object. Before this, stop() has nothing to end.
  void connect(CoreDriver& driver, HeadLink& head, Processes& processes);

  // Returns at once; on_ended follows. Calls after the first have no effect.
  void stop(const StopReason& reason);
  bool has_begun() const { return begun_; }

  // Starts to drain the node, as DrainWatch::ask(). Returns kUnavailable if it is stopping already.
  // `store_used` are the bytes of objects in its store.
  Result<proto::DrainReply> drain(const proto::DrainRequest& request, int64_t store_used);

 private:
  void leave_if_drained();
  void say_farewell();
  void finish();

  net::Loop& loop_;
  const NodeManagerOptions& options_;
  Sessions& sessions_;
  const Events events_;
  CoreDriver* driver_ = nullptr;  // set by connect(), as the next ones
  HeadLink* head_ = nullptr;
  std::unique_ptr<DrainWatch> drain_watch_;
  std::unique_ptr<ProcessEnds> ends_;
  net::Alarm drain_alarm_;
  bool begun_ = false;
  StopReason reason_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
