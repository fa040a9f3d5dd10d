#include "daemons/head/core/group_messages.h"

#include <algorithm>

namespace rt::head {

void send_prepare(HeadSink& sink, const Group& group, const NodeState& node) {
  proto::PrepareBundlesRequest request;
  request.set_group_id(group.id.binary());
  request.set_epoch(group.attempt->epoch);
  request.set_job_id(group.job.binary());
  for (int index : group.attempt->parts.at(node.id).indexes) {
    proto::PrepareBundlesRequest::Bundle& bundle = *request.add_bundles();
    bundle.set_index(index);
    group.bundles.resources(static_cast<size_t>(index)).to_proto(bundle.mutable_resources());
  }
  sink.prepare_bundles(node.link(), request);
}

void give_back(HeadSink& sink, const Cluster& cluster, const NodeId& node,
               const BundlesToReturn& bundles, const proto::ExitInfo& why) {
  const NodeState* to = cluster.find(node);
  if (!to || !to->usable()) return;
  proto::ReturnBundlesRequest request;
  request.set_group_id(bundles.group.binary());
  request.set_epoch(bundles.epoch);
  request.mutable_indexes()->Assign(bundles.indexes.begin(), bundles.indexes.end());
  *request.mutable_why() = why;
  sink.return_bundles(to->link(), request);
}

scheduling::BundleNodes kept_nodes(const Group& group, const Cluster& cluster) {
  scheduling::BundleNodes nodes;
  if (!group.was_created) return nodes;
  for (int i = 0; i < static_cast<int>(group.bundles.size()); ++i) {
    const NodeId node = group.node_of(i);
    nodes.push_back(node.is_nil() ? scheduling::kNoNode : cluster.candidates().find(node));
  }
  return nodes;
}

scheduling::BundleShortage shortage_of(const Group& group, const Cluster& cluster) {
  return scheduling::explain_bundles(group.bundles, kept_nodes(group, cluster),
                                     cluster.candidates(), [&](const NodeId& id) {
                                       const NodeState* node = cluster.find(id);
                                       return node ? node->info.ip() : id.hex();
                                     });
}

proto::GroupInfo GroupWords::shown(const Group& group) {
  proto::GroupInfo info = group.info;
  if (group.phase != Group::Phase::kQueued) return info;
  auto [at, added] = known_.try_emplace(group.shape);
  if (added) at->second = shortage_of(group, cluster_);
  info.set_why(at->second.why);
  info.set_infeasible(at->second.infeasible);
  // Nodes were looked for together with the others of its shape.
  if (!info.why().empty()) info.set_attempts(std::max<int64_t>(info.attempts(), 1));
  return info;
}

}  // namespace rt::head
