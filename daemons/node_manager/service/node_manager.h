// The node-manager daemon: connects the cores' decisions with processes, owners, the head and the
// object store. Its parts do the work; this class makes them, and tells them of each other.
//
// Lifecycle: start() listens, and starts the fork server and the connection to the object store at
// the same time; the node registers at the head once its store has answered. on_ready is called
// when the node is registered. stop() (because of a signal, the lifeline, or the loss of the head
// or the store) calls on_stopping, leaves the cluster, ends every process of the node and calls
// on_stopped. Threads: the loop's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/rpc/server.h"
#include "daemons/node_manager/service/admission.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/dead_workers.h"
#include "daemons/node_manager/service/decisions.h"
#include "daemons/node_manager/service/event_relay.h"
#include "daemons/node_manager/service/figures.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/load_reports.h"
#include "daemons/node_manager/service/news_delivery.h"
#include "daemons/node_manager/service/node_rpc.h"
#include "daemons/node_manager/service/options.h"
#include "daemons/node_manager/service/processes.h"
#include "daemons/node_manager/service/profiling.h"
#include "daemons/node_manager/service/requests.h"
#include "daemons/node_manager/service/sessions.h"
#include "daemons/node_manager/service/shutdown.h"
#include "daemons/node_manager/service/store_link.h"

namespace rt::node {

class NodeManager final {
 public:
  struct Events {
    // `status` is a line about the node for people.
    std::function<void(const std::string& status)> on_ready, on_status;
    std::function<void(const std::string& why)> on_stopping;
    std::function<void(const Status& how)> on_stopped;
  };
  NodeManager(net::Loop& loop, NodeManagerOptions options, Events events);
  ~NodeManager();

  // Fails if a socket cannot be used. Failures of the head or the store lead to stop() later.
  Status start();
  // Returns at once; on_stopped follows. Calls after the first have no effect.
  void stop(const StopReason& reason) { shutdown_.stop(reason); }
  int port() const { return server_->port(); }  // once started

  const NodeCore& core() const { return driver_->core(); }  // once started

 private:
  // connections (node_manager_sessions.cc)
  void on_connection(const std::shared_ptr<rpc::Connection>& connection);
  void on_closed(const rpc::Connection* connection);
  bool on_foreign(const rpc::Preamble& preamble, int fd, bool is_unix);

  // cluster (node_manager.cc)
  void join();
  void fill_node(proto::Node* node);
  void fill_registration(proto::RegisterNodeRequest* request);
  HeadLink::Events head_events();
  void on_registered(const proto::RegisterNodeReply& reply);
  void head_lost(const Error& why);
  std::string status_line() const;
  void store_problem_changed();
  void begin_stop(const std::string& why);

  net::Loop& loop_;
  const NodeManagerOptions options_;
  Events events_;

  // The parts use each other while the loop runs, and not when they end: this object ends outside
  // of it, and its connections end first.
  Decisions decisions_;
  std::unique_ptr<CoreDriver> driver_;
  std::unique_ptr<Processes> processes_;
  std::unique_ptr<Profiling> profiling_;
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<HeadLink> head_;
  std::unique_ptr<LoadReports> load_reports_;
  std::unique_ptr<Figures> figures_;
  std::unique_ptr<EventRelay> task_events_;
  std::unique_ptr<StoreLink> store_;  // null: a node without a store
  std::unique_ptr<DeadWorkers> dead_workers_;
  std::unique_ptr<NewsDelivery> news_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<NodeRpc> rpc_;
  std::unique_ptr<rpc::Server> server_;
  Sessions sessions_;
  Shutdown shutdown_;
};

}  // namespace rt::node
