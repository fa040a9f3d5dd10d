// The questions that a NodeCore answers: what runs here, what waits, and what the head is told of
// it. Asking changes nothing, and no answer is a copy unless it says so.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/config/settings.h"
#include "common/proto/metrics.pb.h"
#include "daemons/node_manager/core/bundle_line.h"
#include "daemons/node_manager/core/bundles.h"
#include "daemons/node_manager/core/cluster_view.h"
#include "daemons/node_manager/core/hosted_actors.h"
#include "daemons/node_manager/core/job_holds.h"
#include "daemons/node_manager/core/leases.h"
#include "daemons/node_manager/core/node_identity.h"
#include "daemons/node_manager/core/workers.h"

namespace rt::node {

class NodeView {
 public:
  // All of them outlive the view.
  struct Parts {
    const Settings& settings;
    const NodeIdentity& me;
    const Rooms& rooms;
    const BundleLine& bundle_line;
    const ClusterView& cluster;
    const Workers& workers;
    const HostedActors& actors;
    const Leases& leases;
    const JobHolds& job_holds;
    const std::optional<proto::NodeDrain>& drain;
    const proto::NodeCounters& counters;
  };
  explicit NodeView(const Parts& node) : node_(node) {}

  const NodeIdentity& identity() const { return node_.me; }
  const Worker* worker(const WorkerId& id) const { return pool().find(id); }
  const Workers& workers() const { return node_.workers; }
  const WorkerPool& pool() const { return node_.workers.pool(); }
  const LeaseQueue& leases() const { return node_.leases.queue(); }
  // Returns the resources of the node apart from those that its bundles hold.
  const LocalResources& resources() const { return node_.rooms.node().resources(); }
  const Bundles& bundles() const { return node_.rooms.bundles(); }
  const ClusterView& cluster() const { return node_.cluster; }
  const std::map<ActorId, HostedActor>& actors() const { return node_.actors.all(); }
  const proto::NodeCounters& counters() const { return node_.counters; }
  // Why and until when the node drains, or nothing.
  const std::optional<proto::NodeDrain>& drain() const { return node_.drain; }
  // Describes for people what would be lost if the node left now; empty if nothing would.
  std::string busy_with() const;
  // Fills in availability and demand for the head. Negative amounts (debts) are left out.
  void fill_report(proto::ResourceReport* report) const;
  // Aborts the process if the records contradict each other.
  void check_invariants() const;

 private:
  class DemandRows;  // node_view.cc

  const Parts node_;
};

}  // namespace rt::node
