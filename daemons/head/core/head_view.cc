#include "daemons/head/core/head_view.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace rt::head {

proto::GetNodesReply HeadView::get_nodes(const proto::GetNodesRequest& request, Now now) const {
  proto::GetNodesReply reply;
  for (const auto& [id, node] : head_.cluster.nodes()) {
    if (node.alive() || !request.alive_only()) *reply.add_nodes() = head_.cluster.shown(node, now);
  }
  return reply;
}

proto::ClusterStatusReply HeadView::cluster_status(Now now) const {
  proto::ClusterStatusReply reply;
  std::vector<proto::Demand> all;
  int64_t for_arguments = 0;
  head_.actors.placement().add_waiting(head_.actors.directory(), &all, &for_arguments);
  head_.submitted.add_demands(&all);
  for (const auto& [id, node] : head_.cluster.nodes()) {
    *reply.add_nodes() = head_.cluster.shown(node, now);
    const NodeState::Waiting& waiting = node.waiting;
    all.insert(all.end(), waiting.demands.begin(), waiting.demands.end());
    reply.set_demands_left_out(reply.demands_left_out() + waiting.demands_left_out);
    for_arguments += waiting.for_arguments;
    reply.set_waiting_for_actors(reply.waiting_for_actors() + waiting.for_actors);
    if (waiting.store.waiters_size() > 0) *reply.add_store_waits() = waiting.store;
  }
  // The key consists of the shape, waits_for, where, and the bundle of a placement group.
  std::map<std::tuple<ResourceSet, std::string, std::string, std::string, int>, proto::Demand>
      merged;
  for (const proto::Demand& demand : all) {
    ResourceSet shape = ResourceSet::from_proto(demand.resources());
    auto [it, added] = merged.try_emplace(
        {shape, demand.waits_for(), demand.where(), demand.group_id(), demand.bundle_index()},
        demand);
    if (!added) it->second.set_count(it->second.count() + demand.count());
    // The sender of a demand that only some nodes meet knows whether one of them lives.
    if (added && demand.where().empty() && demand.group_id().empty())
      it->second.set_infeasible(head_.cluster.candidates().infeasible(shape));
  }
  for (auto& [key, demand] : merged) *reply.add_demands() = std::move(demand);
  head_.groups.add_pending(reply.mutable_pending_groups());
  reply.set_waiting_for_arguments(for_arguments);
  reply.set_wall_time_ms(now.wall_us / 1000);
  reply.set_session_name(head_.options.session_name);
  for (const std::string& text : consequences_.recent_failures()) reply.add_recent_failures(text);
  return reply;
}

proto::GetJobsReply HeadView::get_jobs() const {
  proto::GetJobsReply reply;
  for (const auto& [number, job] : head_.jobs.all()) *reply.add_jobs() = job;
  return reply;
}

Result<proto::SubmittedJob> HeadView::submitted_job(const std::string& submission_id) const {
  RT_ASSIGN(const proto::SubmittedJob* job, head_.submitted.find(submission_id));
  return *job;
}

}  // namespace rt::head
