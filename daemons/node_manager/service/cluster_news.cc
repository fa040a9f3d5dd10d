#include "daemons/node_manager/service/cluster_news.h"

#include <fmt/core.h>

#include <utility>

#include "daemons/node_manager/core/death_news.h"

namespace rt::node {

void ClusterNews::event(const proto::HeadEvent& event) {
  if (event.nodes_size() > 0) nodes_changed(event.nodes(), true);
  for (const std::string& id : event.finished_jobs()) job_finished(JobId::from_binary(id));
  for (const std::string& id : event.over_jobs()) job_over(JobId::from_binary(id));
  if (event.dead_workers_size() > 0) {
    const DeathNews::Told told = DeathNews::heard(event.dead_workers());
    node_.sessions.tell_processes(told.processes);
    if (node_.store) node_.store->owners_gone(told.store);
  }
}

void ClusterNews::registered(const proto::RegisterNodeReply& reply, bool first) {
  nodes_changed(membership_.since_registration(reply.nodes()), !first);
  for (const std::string& id : reply.dead_jobs()) job_finished(JobId::from_binary(id));
  if (std::exchange(told_lost_, false))
    node_.sessions.tell_drivers(
        fmt::format("The cluster's head at {} is back.", options_.head.to_string()), false);
}

void ClusterNews::lost(const std::string& why) {
  told_lost_ = true;
  node_.driver.drive([](NodeCore& core, Now now) { core.head_lost(now); });
  node_.sessions.tell_drivers(
      fmt::format("The cluster's head at {} is lost ({}). Tasks and actors go on; what "
                  "needs the head waits, and this node tries for {} s to reach it.",
                  options_.head.to_string(), why,
                  options_.settings.head_reconnect_timeout_ms / 1000),
      false);
}

void ClusterNews::nodes_changed(const Membership::NodeList& nodes, bool tell_processes) {
  const Membership::Turn turn = membership_.changed(nodes);
  if (turn.dead) return on_dead_(*turn.dead);
  for (const std::string& line : turn.lines) node_.sessions.tell_drivers(line, false);
  if (tell_processes && turn.news.nodes_size() > 0) node_.sessions.tell_processes(turn.news);
  node_.driver.drive([&](NodeCore& core, Now now) {
    for (const proto::Node& node : nodes) core.node_changed(node);
    core.nodes_settled(now);
  });
}

void ClusterNews::job_finished(JobId job) {
  if (job.is_nil()) return;
  node_.driver.drive([&](NodeCore& core, Now now) { core.job_finished(job, now); });
  // This frees what the driver owned. Objects of its workers are freed as each worker dies;
  // workers of a detached actor live on.
  proto::OwnersGone gone;
  gone.add_worker_ids(driver_worker_id(job).binary());
  if (node_.store) node_.store->owners_gone(gone);
}

void ClusterNews::job_over(JobId job) {
  if (job.is_nil()) return;
  node_.driver.drive([&](NodeCore& core, Now now) { core.job_over(job, now); });
  proto::OwnersGone gone;
  gone.add_job_ids(job.binary());
  if (node_.store) node_.store->owners_gone(gone);
}

}  // namespace rt::node
