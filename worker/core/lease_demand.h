// The message that tells a node-manager how many leases a scheduling class wants.
#pragma once

#include <string>

#include "common/proto/node_manager.pb.h"
#include "worker/core/submitter.h"

namespace rt::worker {

// Fills in everything but the job, which the sender knows.
inline proto::LeaseDemand lease_demand(const NodeKey& node, const SchedulingClass& c, int want,
                                       int64_t backlog, const std::string& what) {
  proto::LeaseDemand demand;
  demand.set_class_id(c.id);
  c.resources.to_proto(demand.mutable_resources());
  demand.set_want(want);
  demand.set_backlog(backlog);
  demand.set_strategy(c.strategy);
  demand.set_runtime_env(c.runtime_env);
  demand.set_what(what);
  demand.set_language(c.language);
  if (c.constraint) *demand.mutable_constraint() = *c.constraint;
  // A demand that was redirected to this node must not be redirected again.
  demand.set_no_spill(!node.is_nil() || c.group);
  if (c.group) {
    demand.set_group_id(c.group->group().binary());
    demand.set_bundle_index(c.group->bundle_index());
    demand.set_group_epoch(c.group->epoch_at(node));
  }
  return demand;
}

}  // namespace rt::worker
