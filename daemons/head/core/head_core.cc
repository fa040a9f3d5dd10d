#include "daemons/head/core/head_core.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemons/head/core/recovery.h"

namespace rt::head {
namespace {

// Clients find the address of the HTTP interface under this namespace and key.
constexpr char kDashboardKey[] = "dashboard";

}  // namespace

HeadCore::HeadCore(HeadOptions options, HeadSink& sink)
    : parts_(std::move(options), sink, [this](const NodeId& id, const std::string& why, Now now) {
        consequences_.node_lost(id, proto::UNEXPECTED_TERMINATION, why, now);
      }) {}

Status HeadCore::load(const Tables& tables, Now now) {
  Event event(*this, now);
  RT_TRY(recover(parts_, tables, now));
  consequences_.begin_settling(now);
  return {};
}

void HeadCore::persisted(uint64_t id, const Status& status, Now now) {
  Event event(*this, now);
  rewrites_.persisted(id, status, now);
}

void HeadCore::tick(Now now) {
  Event event(*this, now);
  parts_.timers.run_due(now);
}

void HeadCore::register_node(ConnId conn, const proto::RegisterNodeRequest& request, Now now,
                             Reply<proto::RegisterNodeReply> reply) {
  Event event(*this, now);
  const bool comes_back = parts_.cluster.find(NodeId::from_binary(request.node().node_id()));
  auto registered = parts_.cluster.register_node(conn, request.node(), now);
  if (!registered) return reply(registered.error());
  NodeState& node = **registered;
  if (auto old = parts_.cluster.predecessor_of(node))
    consequences_.node_lost(*old, proto::UNEXPECTED_TERMINATION,
                            "another node-manager listens at its address now", now);

  proto::RegisterNodeReply answer;
  answer.set_cluster_id(parts_.cluster_id);
  answer.set_head_incarnation(parts_.incarnation);
  answer.set_dashboard_address(dashboard_address_);
  std::set<JobId> connected;
  for (const auto& job : request.live_jobs()) {
    if (!JobId::is_valid(job.job_id())) continue;
    JobId id = JobId::from_binary(job.job_id());
    if (parts_.jobs.running(id)) {
      connected.insert(id);
    } else {
      answer.add_dead_jobs(job.job_id());
    }
  }
  for (const auto& [id, other] : parts_.cluster.nodes()) {
    if (other.alive()) *answer.add_nodes() = parts_.cluster.announced(other, now);
  }
  // The request message is destroyed with the reply, so the lists are copied first.
  const ActorManager::OfNode actors_there{request.live_actors(), request.ended_actors()};
  auto bundles = request.bundles();
  std::optional<std::set<std::string>> submitted_jobs;
  if (request.has_submitted_jobs()) {
    const auto& ids = request.submitted_jobs().submission_ids();
    submitted_jobs.emplace(ids.begin(), ids.end());
  }
  reply(std::move(answer));

  for (const JobId& job : parts_.jobs.running_on(node.id)) {
    // The job's driver ended while the node was away.
    if (!connected.contains(job)) consequences_.end_job(job, now);
  }
  parts_.groups.node_registered(node, bundles, now);
  parts_.actors.node_registered(node, actors_there, now);
  parts_.submitted.node_registered(node, submitted_jobs, now);
  if (comes_back) {
    const proto::HeadEvent missed = consequences_.missed();
    if (missed.ByteSizeLong() > 0) parts_.sink.push(conn, missed);
  }
  consequences_.settle_if_complete(now);
}

Status HeadCore::report_resources(ConnId conn, const proto::ResourceReport& report, Now now) {
  Event event(*this, now);
  auto freed = parts_.cluster.report(conn, report, now);
  if (!freed) return freed.error();
  if (*freed) {
    parts_.actors.want_placement();
    parts_.groups.want_placement();
  }
  return {};
}

Status HeadCore::unregister_node(ConnId conn, const proto::UnregisterNodeRequest& request,
                                 Now now) {
  Event event(*this, now);
  RT_ASSIGN(NodeState * node, node_over(parts_.cluster, conn, "unregister"));
  if (request.node_id() != node->id.view())
    return make_error(Code::kInvalid, "unregister: this connection speaks for another node");
  const bool given = request.reason() != proto::NODE_DEATH_UNSPECIFIED &&
                     proto::NodeDeath_IsValid(request.reason());
  const proto::NodeDeath reason = given ? request.reason() : proto::EXPECTED_TERMINATION;
  consequences_.node_lost(
      node->id, reason, request.message().empty() ? "it left the cluster" : request.message(), now);
  return {};
}

void HeadCore::probe_answered(const NodeId& node, const Status& answer, Now now) {
  Event event(*this, now);
  parts_.cluster.probe_answered(node, answer, now);
}

void HeadCore::connection_closed(ConnId conn, Now now) {
  Event event(*this, now);
  parts_.subscriptions.remove(conn);
  parts_.cluster.connection_closed(conn, now);
}

void HeadCore::set_dashboard(const std::string& address) {
  dashboard_address_ = address;
  proto::KvPutRequest request;
  request.set_ns(kDashboardKey);
  request.set_key(kDashboardKey);
  request.set_value(address);
  request.set_overwrite(true);
  parts_.kv.put(request, [](Result<proto::KvPutReply>) {});
}

void HeadCore::check_invariants(Now now) const {
  parts_.cluster.check_invariants(now);
  parts_.subscriptions.check_invariants();
  parts_.jobs.check_invariants();
  parts_.kv.check_invariants();
  parts_.groups.check_invariants();
  parts_.actors.check_invariants();
  parts_.submitted.check_invariants();
}

}  // namespace rt::head
