// Passes on what the head tells of the cluster (nodes, jobs, dead workers): to the core, to the
// processes of this node, and to the object store. Threads: the loop's.
#pragma once

#include <functional>
#include <string>

#include "common/proto/head.pb.h"
#include "daemons/node_manager/core/membership.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/options.h"
#include "daemons/node_manager/service/sessions.h"
#include "daemons/node_manager/service/store_link.h"

namespace rt::node {

class ClusterNews {
 public:
  // All of them are used while the loop runs.
  struct Parts {
    CoreDriver& driver;
    Sessions& sessions;
    StoreLink* store;  // null: a node without a store
  };
  // `on_dead` is called when the head has declared this node dead, with the reason.
  ClusterNews(const NodeManagerOptions& options, Parts node,
              std::function<void(const std::string& why)> on_dead)
      : options_(options),
        node_(node),
        on_dead_(std::move(on_dead)),
        membership_(options.node_id) {}

  const Membership& membership() const { return membership_; }

  // ---- what the head says
  void event(const proto::HeadEvent& event);
  // A head has accepted the node. `first`: for the first time.
  void registered(const proto::RegisterNodeReply& reply, bool first);
  // The head is lost, and told of to drivers; registered() tells them that it is back.
  void lost(const std::string& why);
  // Ends what belongs to the job, and frees what its driver owned.
  void job_finished(JobId job);

 private:
  void nodes_changed(const Membership::NodeList& nodes, bool tell_processes);
  void job_over(JobId job);

  const NodeManagerOptions& options_;
  const Parts node_;
  const std::function<void(const std::string&)> on_dead_;
  Membership membership_;
  bool told_lost_ = false;
};

}  // namespace rt::node
