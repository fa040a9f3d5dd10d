#include "daemons/head/core/head_core.h"

#include <fmt/core.h>

#include <utility>

namespace rt::head {
namespace {

// Namespace and key under which clients find the address of the HTTP interface.
constexpr char kDashboardKey[] = "dashboard";
constexpr size_t kRecentFailures = 20;

}  // namespace

HeadCore::HeadCore(HeadOptions options, HeadSink& sink)
    : options_(std::move(options)),
      sink_(sink),
      rng_(options_.seed),
      journal_(sink),
      subscriptions_(sink),
      cluster_({options_, sink, journal_, timers_,
                [this](const NodeId& id, const std::string& why, Now now) {
                  node_lost(id, proto::UNEXPECTED_TERMINATION, why, now);
                }}),
      jobs_(journal_),
      kv_(journal_, options_.settings),
      packages_(kv_, options_.settings),
      groups_({options_, sink, journal_, timers_, cluster_, subscriptions_, jobs_,
               [this](const ActorId& id) {
                 const Actor* actor = actors_.directory().find(id);
                 return actor && !actor->dead();
               }}),
      actors_({options_, sink, journal_, timers_, cluster_, subscriptions_, jobs_,
               groups_.directory(), incarnation_}),
      submitted_({options_, sink, journal_, timers_, cluster_, rng_}) {}

void HeadCore::end_event(Now now) {
  // Each step may cause work for an earlier one, so the steps repeat until nothing is left to do.
  for (;;) {
    actors_.end_event(now);
    groups_.end_event(now);
    if (exchange_news(now)) continue;
    submitted_.end_event();
    jobs_.forget_finished(options_.settings.finished_jobs_kept);
    auto due = journal_.flush();
    if (due.empty()) break;
    for (auto& continuation : due) continuation({}, now);
  }
  cluster_.publish(now,
                   [this](const proto::HeadEvent& event) { subscriptions_.publish_nodes(event); });
  if (ended_now_.finished_jobs_size() > 0 || ended_now_.over_jobs_size() > 0)
    cluster_.broadcast(std::exchange(ended_now_, {}));
  if (const int64_t next = timers_.take_next_us(); next >= 0) sink_.set_timer(next);
}

bool HeadCore::exchange_news(Now now) {
  const ActorManager::Ended ended = actors_.take_ended();
  for (const JobId& job : ended.jobs) job_over(job);
  groups_.owners_dead(ended.workers, now);
  for (const ActorId& actor : ended.actors) groups_.actor_dead(actor, now);
  const GroupManager::News news = groups_.take_news();
  for (const auto& [group, why] : news.removed) actors_.group_removed(group, why, now);
  if (news.created) actors_.want_placement();
  return !news.none();
}

void HeadCore::timer(Now now) {
  Event event(*this, now);
  timers_.run_due(now);
}

void HeadCore::persisted(uint64_t id, const Status& status, Now now) {
  Event event(*this, now);
  for (auto& continuation : journal_.persisted(id, status)) continuation(status, now);
  if (!journal_.has_dirty() || retry_timer_) return;
  retry_timer_ = timers_.at(now.steady_us + options_.settings.storage_retry_ms * 1000, [this](Now) {
    retry_timer_ = 0;
    rewrite_dirty();
  });
}

void HeadCore::rewrite_dirty() {
  auto record = [this](const std::string& table,
                       const std::string& key) -> std::optional<std::string> {
    if (table == table::kMeta) {
      if (key == "next_job") return jobs_.counter();
      if (key == "incarnation") return std::to_string(incarnation_);
      return cluster_id_;
    }
    if (table == table::kNodes) {
      const NodeState* node = cluster_.find(NodeId::from_binary(key));
      if (!node || !node->alive()) return std::nullopt;
      return record_of(*node);
    }
    if (table == table::kJobs) return jobs_.record(key);
    if (table == table::kActors) return actor_record(actors(), key);
    if (table == table::kGroups) return groups_.record(key);
    if (table == table::kKv) return kv_.record(key);
    if (table == table::kKvJobs) return kv_.jobs_record(key);
    return submitted_.record(key);
  };
  for (const auto& [table, key] : journal_.take_dirty()) {
    const char* const kTables[] = {table::kMeta,   table::kNodes,        table::kJobs,
                                   table::kActors, table::kGroups,       table::kKv,
                                   table::kKvJobs, table::kSubmittedJobs};
    for (const char* known : kTables) {
      if (table != known) continue;
      if (auto value = record(table, key)) {
        journal_.put(known, key, *std::move(value));
      } else {
        journal_.erase(known, key);
      }
    }
  }
}

void HeadCore::register_node(ConnId conn, const proto::RegisterNodeRequest& request, Now now,
                             Reply<proto::RegisterNodeReply> reply) {
  Event event(*this, now);
  const NodeState* before = cluster_.find(NodeId::from_binary(request.node().node_id()));
  int64_t lost_at_us = before ? before->lost_at_us : 0;
  auto registered = cluster_.register_node(conn, request.node(), now);
  if (!registered) return reply(registered.error());
  NodeState& node = **registered;
  if (auto old = cluster_.predecessor_of(node))
    node_lost(*old, proto::UNEXPECTED_TERMINATION,
              "another node-manager listens at its address now", now);

  proto::RegisterNodeReply answer;
  answer.set_cluster_id(cluster_id_);
  answer.set_head_incarnation(incarnation_);
  answer.set_dashboard_address(dashboard_address_);
  std::set<JobId> connected;
  for (const auto& job : request.live_jobs()) {
    if (!JobId::is_valid(job.job_id())) continue;
    JobId id = JobId::from_binary(job.job_id());
    if (jobs_.running(id)) {
      connected.insert(id);
    } else {
      answer.add_dead_jobs(job.job_id());
    }
  }
  for (const auto& [id, other] : cluster_.nodes()) {
    if (other.alive()) *answer.add_nodes() = cluster_.announced(other, now);
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

  for (const JobId& job : jobs_.running_on(node.id)) {
    // The job's driver ended while the node was away.
    if (!connected.contains(job)) end_job(job, now);
  }
  groups_.node_registered(node, bundles, now);
  actors_.node_registered(node, actors_there, now);
  submitted_.node_registered(node, submitted_jobs, now);
  if (!before) return settle_if_complete(now);
  // Jobs may have ended while the node was disconnected and could not hear of it.
  constexpr int64_t kSlackMs = 1000;
  const int64_t since_ms = (now.wall_us - (now.steady_us - lost_at_us)) / 1000 - kSlackMs;
  proto::HeadEvent missed;
  for (const JobId& job : jobs_.finished_since(settling_ ? 0 : since_ms)) {
    missed.add_finished_jobs(job.binary());
    if (!actors().any_of_job(job)) missed.add_over_jobs(job.binary());
  }
  if (missed.finished_jobs_size() > 0) sink_.push(conn, missed);
  settle_if_complete(now);
}

Status HeadCore::report_resources(ConnId conn, const proto::ResourceReport& report, Now now) {
  Event event(*this, now);
  auto freed = cluster_.report(conn, report, now);
  if (!freed) return freed.error();
  if (*freed) {
    actors_.want_placement();
    groups_.want_placement();
  }
  return {};
}

Status HeadCore::unregister_node(ConnId conn, const proto::UnregisterNodeRequest& request,
                                 Now now) {
  Event event(*this, now);
  RT_ASSIGN(NodeState * node, node_over(cluster_, conn, "unregister"));
  if (request.node_id() != node->id.view())
    return make_error(Code::kInvalid, "unregister: this connection speaks for another node");
  const bool given = request.reason() != proto::NODE_DEATH_UNSPECIFIED &&
                     proto::NodeDeath_IsValid(request.reason());
  const proto::NodeDeath reason = given ? request.reason() : proto::EXPECTED_TERMINATION;
  node_lost(node->id, reason, request.message().empty() ? "it left the cluster" : request.message(),
            now);
  return {};
}

void HeadCore::node_lost(const NodeId& id, proto::NodeDeath reason, const std::string& why,
                         Now now) {
  NodeState* node = cluster_.find(id);
  if (!node || !node->alive()) return;
  cluster_.declare_dead(*node, reason, why, now);
  sink_.log(fmt::format("node {} ({}) is dead: {}", node->info.ip(), id.hex(), why));
  for (const JobId& job : jobs_.running_on(id)) end_job(job, now);
  const int losers = groups_.node_lost(*node, now);
  actors_.node_lost(*node, now);
  const std::string lost = losers == 0 ? ""
                                       : fmt::format("; {} placement group{} lost bundles with it",
                                                     losers, losers == 1 ? "" : "s");
  if (reason == proto::UNEXPECTED_TERMINATION || losers > 0) {
    recent_failures_.push_back(
        fmt::format("node {} ({}) {}: {}{}", node->info.ip(), id.hex(),
                    reason == proto::UNEXPECTED_TERMINATION ? "died" : "left", why, lost));
    if (recent_failures_.size() > kRecentFailures) recent_failures_.pop_front();
  }
  submitted_.node_lost(*node, now);
  settle_if_complete(now);
}

void HeadCore::settle_if_complete(Now now) {
  if (!settling_ || cluster_.awaiting_nodes()) return;
  settling_ = false;
  groups_.nodes_settled(now);
  actors_.nodes_settled(now);
  submitted_.nodes_settled(now);
  for (const auto& [number, job] : jobs_.all()) {
    const NodeState* node = cluster_.find(NodeId::from_binary(job.driver_node_id()));
    if (!job.finished() && (!node || !node->alive())) end_job(job_id_from_int(number), now);
  }
}

void HeadCore::probe_answered(const NodeId& node, const Status& answer, Now now) {
  Event event(*this, now);
  cluster_.probe_answered(node, answer, now);
}

void HeadCore::connection_closed(ConnId conn, Now now) {
  Event event(*this, now);
  subscriptions_.remove(conn);
  cluster_.connection_closed(conn, now);
}

proto::GetNodesReply HeadCore::get_nodes(const proto::GetNodesRequest& request, Now now) const {
  proto::GetNodesReply reply;
  for (const auto& [id, node] : cluster_.nodes()) {
    if (node.alive() || !request.alive_only()) *reply.add_nodes() = cluster_.shown(node, now);
  }
  return reply;
}

proto::ClusterStatusReply HeadCore::cluster_status(Now now) const {
  proto::ClusterStatusReply reply;
  std::vector<proto::Demand> all;
  int64_t for_arguments = 0;
  actors_.placement().add_waiting(actors(), &all, &for_arguments);
  submitted_.add_demands(&all);
  for (const auto& [id, node] : cluster_.nodes()) {
    *reply.add_nodes() = cluster_.shown(node, now);
    const NodeState::Waiting& waiting = node.waiting;
    all.insert(all.end(), waiting.demands.begin(), waiting.demands.end());
    reply.set_demands_left_out(reply.demands_left_out() + waiting.demands_left_out);
    for_arguments += waiting.for_arguments;
    reply.set_waiting_for_actors(reply.waiting_for_actors() + waiting.for_actors);
    if (waiting.store.waiters_size() > 0) *reply.add_store_waits() = waiting.store;
  }
  // The key is the shape, waits_for, where, and the bundle of a placement group.
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
      it->second.set_infeasible(cluster_.candidates().infeasible(shape));
  }
  for (auto& [key, demand] : merged) *reply.add_demands() = std::move(demand);
  groups_.add_pending(reply.mutable_pending_groups());
  reply.set_waiting_for_arguments(for_arguments);
  reply.set_wall_time_ms(now.wall_us / 1000);
  reply.set_session_name(options_.session_name);
  for (const std::string& text : recent_failures_) reply.add_recent_failures(text);
  return reply;
}

void HeadCore::set_dashboard(const std::string& address) {
  dashboard_address_ = address;
  proto::KvPutRequest request;
  request.set_ns(kDashboardKey);
  request.set_key(kDashboardKey);
  request.set_value(address);
  request.set_overwrite(true);
  kv_.put(request, [](Result<proto::KvPutReply>) {});
}

void HeadCore::check_invariants(Now now) const {
  cluster_.check_invariants(now);
  subscriptions_.check_invariants();
  jobs_.check_invariants();
  kv_.check_invariants();
  groups_.check_invariants();
  actors_.check_invariants();
  submitted_.check_invariants();
}

}  // namespace rt::head
