// Where a queued actor may start now: the node, or the bundle of its placement group. It decides
// and changes no actor; ActorManager starts and ends them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/scheduling/constraint.h"
#include "daemons/head/core/actors.h"
#include "daemons/head/core/bundle_seats.h"
#include "daemons/head/core/cluster.h"
#include "daemons/head/core/subscriptions.h"

namespace rt::head {

class ActorPlacement {
 public:
  struct Env {
    const HeadOptions& options;
    Cluster& cluster;
    Subscriptions& subscriptions;
    const GroupDirectory& groups;
    const BundleSeats& seats;
  };
  explicit ActorPlacement(Env env) : env_(env) {}

  // An actor with neither a node nor an end waits.
  struct Verdict {
    NodeState* node = nullptr;           // The node on which the actor starts.
    int bundle = -1;                     // The bundle in which it starts, if it is in a group.
    std::optional<proto::ExitInfo> end;  // The reason for which it can never start.
    bool infeasible = false;             // Whether no node of the cluster could ever take it.
  };
  Verdict decide(const Actor& queued, Now now);
  // Tells the drivers of the queue's actors, each once, that no node can take them.
  void warn_infeasible(const Shape& shape, ShapeQueue& queue);
  // The demand of all queued actors, and the number of those that wait for their arguments.
  void add_waiting(const ActorDirectory& directory, std::vector<proto::Demand>* demands,
                   int64_t* for_arguments) const;

 private:
  Verdict decide_in_group(const Actor& actor, Now now) const;
  NodeState* choose(const Actor& actor, const scheduling::AllowedNodes& allowed, Now now);

  Env env_;
  // The last node that a policy which takes turns chose.
  scheduling::NodeSlot turns_last_ = scheduling::kNoNode;
};

}  // namespace rt::head
