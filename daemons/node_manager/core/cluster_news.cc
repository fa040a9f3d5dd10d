#include "daemons/node_manager/core/cluster_news.h"

#include <fmt/core.h>

#include <utility>

#include "daemons/node_manager/core/death_news.h"

namespace rt::node {

ClusterNews::ClusterNews(const Settings& settings, std::string head, const NodeId& me,
                         NewsSink& sink)
    : settings_(settings), head_(std::move(head)), sink_(sink), membership_(me) {}

ClusterNews::~ClusterNews() = default;

void ClusterNews::event(const proto::HeadEvent& event) {
  if (event.nodes_size() > 0 && !nodes_changed(event.nodes(), true)) return;
  for (const std::string& id : event.finished_jobs()) job_finished(JobId::from_binary(id));
  for (const std::string& id : event.over_jobs()) job_over(JobId::from_binary(id));
  if (event.dead_workers_size() > 0) {
    const DeathNews::Told told = DeathNews::heard(event.dead_workers());
    sink_.tell_processes(told.processes);
    sink_.owners_gone(told.store);
  }
}

void ClusterNews::registered(const proto::RegisterNodeReply& reply, bool first) {
  if (!nodes_changed(membership_.since_registration(reply.nodes()), !first)) return;
  for (const std::string& id : reply.dead_jobs()) job_finished(JobId::from_binary(id));
  if (std::exchange(is_lost_, false))
    sink_.tell_drivers(fmt::format("The cluster's head at {} is back.", head_));
}

void ClusterNews::lost(const std::string& why) {
  is_lost_ = true;
  sink_.head_lost();
  sink_.tell_drivers(
      fmt::format("The cluster's head at {} is lost ({}). Tasks and actors go on; what "
                  "needs the head waits, and this node tries for {} s to reach it.",
                  head_, why, settings_.head_reconnect_timeout_ms / 1000));
}

bool ClusterNews::nodes_changed(const Membership::NodeList& nodes, bool tell_processes) {
  const Membership::Turn turn = membership_.changed(nodes);
  if (turn.dead) {
    sink_.declared_dead(*turn.dead);
    return false;
  }
  for (const std::string& line : turn.lines) sink_.tell_drivers(line);
  if (tell_processes && turn.news.nodes_size() > 0) sink_.tell_processes(turn.news);
  sink_.nodes_changed(nodes);
  proto::OwnersGone gone;
  for (const proto::Node& node : nodes) {
    if (!node.alive()) gone.add_node_ids(node.node_id());
  }
  if (gone.node_ids_size() > 0) sink_.owners_gone(gone);
  return true;
}

void ClusterNews::job_finished(JobId job) {
  if (job.is_nil()) return;
  sink_.job_finished(job);
  // This frees what the driver owned. Objects of its workers are freed as each worker dies;
  // workers of a detached actor live on.
  proto::OwnersGone gone;
  gone.add_worker_ids(driver_worker_id(job).binary());
  sink_.owners_gone(gone);
}

void ClusterNews::job_over(JobId job) {
  if (job.is_nil()) return;
  sink_.job_over(job);
  proto::OwnersGone gone;
  gone.add_job_ids(job.binary());
  sink_.owners_gone(gone);
}

}  // namespace rt::node
