// The leases of a node's workers: takes the demands of owners, grants what the node can give,
// redirects what other nodes serve better, and asks leases back. NodeCore says when.
//
//   lease_round.h   one pass over the demands: grants and redirects
//   revocation.h    asking leases back
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/recent_set.h"
#include "common/base/status.h"
#include "common/config/settings.h"
#include "common/proto/metrics.pb.h"
#include "common/scheduling/constraint.h"
#include "daemons/node_manager/core/bundle_line.h"
#include "daemons/node_manager/core/bundles.h"
#include "daemons/node_manager/core/cluster_view.h"
#include "daemons/node_manager/core/hosted_actors.h"
#include "daemons/node_manager/core/lease_queue.h"
#include "daemons/node_manager/core/node_sink.h"
#include "daemons/node_manager/core/workers.h"

namespace rt::node {

// Upper bounds of the histogram NodeCounters.lease_wait, in milliseconds.
inline constexpr double kLeaseWaitBoundsMs[] = {1, 5, 10, 50, 100, 500, 1000, 5000, 10000, 60000};

class Leases {
 public:
  // All of them outlive the leases.
  struct Parts {
    NodeSink& sink;
    const Settings& settings;
    Rooms& rooms;
    const BundleLine& bundle_line;
    ClusterView& view;
    Workers& workers;
    const HostedActors& actors;
    const RecentSet<JobId>& finished_jobs;
    proto::NodeCounters& counters;
  };
  explicit Leases(const Parts& node);
  ~Leases();

  const LeaseQueue& queue() const { return queue_; }

  // ---- owners
  // kNo: it says nothing, or cannot be accepted, which is answered with NodeSink::notice().
  // kUnchanged: it was accepted, and nothing is wanted, as before.
  enum class Taken { kNo, kUnchanged, kChanged };
  Taken set_demand(OwnerId owner, const WorkerId& process, const proto::LeaseDemand& demand,
                   Now now);
  // Returns false for an unknown lease, or one of another owner.
  bool take_back(OwnerId owner, const proto::LeaseReturn& request, Now now);
  void owner_closed(OwnerId owner, Now now);

  // ---- service
  // One pass over the demands. `may_start`: processes may be started for them.
  void serve(bool may_start, Now now);
  // Asks owners for leases that others have waited for.
  void revoke_for_waiting(Now now);
  // Notes which demands no node can ever serve, and tells their owners.
  void flag_infeasible(Now now);
  // Tells the drivers whose demands wait for a process that a bound holds up.
  void warn_of_bounds(Now now);
  // From now on no lease is granted, and all are asked back.
  void leave();

  // ---- ends
  // The lease of a worker ends. `worker_stays`: it may be leased again.
  void end(LeaseId id, bool worker_stays, Now now);
  // Drops the demands of a job, except those that outlive it.
  void drop(JobId job, Now now);
  // Fails the demands that wait for a worker of this kind. A later demand tries again.
  void fail(const WorkerKind& kind, const std::string& why, Code code, Now now);

 private:
  class Round;
  class Revocation;

  // This function and the next two are for demands outside of placement groups.
  bool feasible_here(const ResourceSet& request) const {
    return !leaving_ && node_.rooms.node().feasible(request);
  }
  bool may_run_here(const Demand& demand) const {
    return !demand.target.excludes_this_node && feasible_here(demand.resources);
  }
  bool may_run_anywhere(const Demand& demand) const;
  std::string describe_infeasible(const Demand& demand) const;
  // Returns why the demand cannot be accepted, or an empty text.
  std::string fault_of(const proto::LeaseDemand& demand) const;
  void refuse(OwnerId owner, uint64_t class_id, const std::string& message,
              Code code = Code::kInternal);

  const Parts node_;
  LeaseQueue queue_;
  // The last node that a policy which takes turns chose.
  scheduling::NodeSlot turns_last_ = scheduling::kNoNode;
  bool leaving_ = false;
};

}  // namespace rt::node
