// Requests of clients and node-managers about jobs, key-value data, actors and subscriptions. See
// head_core.h.
#include <fmt/core.h>

#include "daemons/head/core/head_core.h"

namespace rt::head {
namespace {

template <class IdType>
Status check_size(const std::string& bytes, const char* what) {
  if (IdType::is_valid(bytes)) return {};
  return make_error(Code::kInvalid,
                    fmt::format("{} has {} bytes, not {}", what, bytes.size(), IdType::kSize));
}

// Makes the usual text form of a random UUID, version 4.
std::string new_namespace(Rng& rng) {
  uint64_t high = (rng.next() & ~uint64_t{0xf000}) | 0x4000;
  uint64_t low = (rng.next() & ~(uint64_t{3} << 62)) | (uint64_t{2} << 62);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

// Returns whether something that runs, or is to run, uses this package of a runtime environment.
bool names_package(const std::string& name, const SubmittedJobs& submitted, const Jobs& jobs,
                   const ActorManager& actors) {
  auto in = [&](const std::string& runtime_env) {
    return runtime_env.find(name) != std::string::npos;
  };
  for (const auto& [id, job] : submitted.all()) {
    if ((job.status() == "PENDING" || job.status() == "RUNNING") && in(job.runtime_env_json()))
      return true;
  }
  for (const auto& [number, job] : jobs.all()) {
    if (!job.finished() && in(job.config().runtime_env())) return true;
  }
  return actors.directory().any_living([&](const proto::ActorSpec& spec) {
    return in(spec.creation().runtime_env()) || in(spec.job_config().runtime_env());
  });
}

}  // namespace

void HeadCore::add_job(const proto::AddJobRequest& request, Now now,
                       Reply<proto::AddJobReply> reply) {
  Event event(*this, now);
  if (Status node = check_size<NodeId>(request.node_id(), "add job: the node id"); !node)
    return reply(node.error());
  const NodeState* node = parts_.cluster.find(NodeId::from_binary(request.node_id()));
  if (!node || !node->alive())
    return reply(make_error(Code::kNotFound, "add job: its node is not part of this cluster"));
  if (!request.worker_id().empty()) {
    if (Status worker = check_size<WorkerId>(request.worker_id(), "add job: the worker id");
        !worker)
      return reply(worker.error());
  }
  auto answer = [this](const proto::JobInfo& job) {
    proto::AddJobReply out;
    out.set_job_id(job.job_id());
    out.set_ray_namespace(job.config().ray_namespace());
    out.set_cluster_id(parts_.cluster_id);
    out.set_session_name(parts_.options.session_name);
    return out;
  };
  // A driver that repeats its request lost the answer with its connection, and gets the same job.
  // If the first request has yet to be committed, this answer comes before the commit.
  if (const proto::JobInfo* same = parts_.jobs.of_driver(request)) return reply(answer(*same));

  const proto::JobInfo& job = parts_.jobs.add(request, new_namespace(parts_.rng), now);
  JobId id = JobId::from_binary(job.job_id());
  std::string submission_id = job.config().submission_id();
  if (submission_id.empty()) {
    auto it = job.config().metadata().find("job_submission_id");
    if (it != job.config().metadata().end()) submission_id = it->second;
  }
  parts_.journal.then(
      [this, id, submission_id, answer, reply = std::move(reply)](const Status& status, Now) {
        if (!status) {
          if (parts_.jobs.running(id)) parts_.jobs.remove(id);
          return reply(status.error());
        }
        if (!submission_id.empty()) parts_.submitted.link(submission_id, id);
        const proto::JobInfo* job = parts_.jobs.find(id);
        if (job) {
          parts_.sink.log(fmt::format("job {} of driver {} on {} has begun", id.hex(),
                                      job->driver_pid(), job->driver_ip()));
          return reply(answer(*job));
        }
        reply(make_error(Code::kCancelled,
                         "the job was ended (its node was lost) while it was being registered"));
      });
}

Status HeadCore::finish_job(const proto::FinishJobRequest& request, Now now) {
  Event event(*this, now);
  RT_TRY(check_size<JobId>(request.job_id(), "finish job: the job id"));
  JobId id = JobId::from_binary(request.job_id());
  if (!parts_.jobs.find(id))
    return make_error(Code::kNotFound,
                      fmt::format("job {} is not known to this cluster", id.hex()));
  consequences_.end_job(id, now);
  return {};
}

void HeadCore::kv_put(const proto::KvPutRequest& request, Now now, Reply<proto::KvPutReply> reply) {
  Event event(*this, now);
  if (JobId::is_valid(request.job_id())) {
    // A driver that has ended may have sent it before; nothing would delete the entry any more.
    const JobId job = JobId::from_binary(request.job_id());
    if (!parts_.jobs.running(job) && !parts_.actors.directory().any_of_job(job))
      return reply(make_error(Code::kNotFound,
                              fmt::format("job {} is over, or unknown to this cluster: nothing is "
                                          "stored for it",
                                          job.hex())));
  }
  if (request.ns() == Packages::kNamespace) {
    if (Status room = parts_.packages.make_room(
            request,
            [this](const std::string& name) {
              return names_package(name, parts_.submitted, parts_.jobs, parts_.actors);
            },
            now);
        !room)
      return reply(room.error());
  }
  parts_.kv.put(request, std::move(reply));
}

void HeadCore::kv_delete(const proto::KvGetRequest& request, Now now,
                         Reply<proto::KvPutReply> reply) {
  Event event(*this, now);
  parts_.kv.erase(request, std::move(reply));
}

void HeadCore::register_actor(const proto::RegisterActorRequest& request, Now now,
                              Reply<proto::RegisterActorReply> reply) {
  Event event(*this, now);
  parts_.actors.register_actor(request, now, std::move(reply));
}

void HeadCore::kill_actor(const proto::KillActorRequest& request, Now now,
                          Reply<proto::Empty> reply) {
  Event event(*this, now);
  parts_.actors.kill(request, now, std::move(reply));
}

void HeadCore::create_actor_answered(const NodeId& node, const ActorId& actor, int64_t epoch,
                                     const Result<proto::CreateActorReply>& reply, Now now) {
  Event event(*this, now);
  parts_.actors.create_answered(node, actor, epoch, reply, now);
}

Status HeadCore::actor_started(ConnId conn, const proto::ActorStarted& report, Now now) {
  Event event(*this, now);
  RT_ASSIGN(NodeState * node, node_over(parts_.cluster, conn, "actor started"));
  RT_TRY(check_size<ActorId>(report.actor_id(), "actor started: the actor id"));
  parts_.actors.started(*node, ActorId::from_binary(report.actor_id()), report, now);
  return {};
}

Status HeadCore::actor_died(ConnId conn, const proto::ActorDied& report, Now now) {
  Event event(*this, now);
  RT_ASSIGN(NodeState * node, node_over(parts_.cluster, conn, "actor died"));
  RT_TRY(check_size<ActorId>(report.actor_id(), "actor died: the actor id"));
  parts_.actors.died(*node, ActorId::from_binary(report.actor_id()), report, now);
  return {};
}

Status HeadCore::dead_workers(ConnId conn, const proto::DeadWorkers& report, Now now) {
  Event event(*this, now);
  RT_TRY(node_over(parts_.cluster, conn, "dead workers"));
  std::vector<WorkerId> workers;
  proto::HeadEvent news;
  for (const std::string& id : report.worker_ids()) {
    RT_TRY(check_size<WorkerId>(id, "dead workers: a worker id"));
    workers.push_back(WorkerId::from_binary(id));
    news.add_dead_workers(id);
  }
  parts_.actors.owners_dead(workers, now);
  if (!workers.empty()) consequences_.tell_nodes(news, now);
  return {};
}

void HeadCore::register_group(ConnId conn, const proto::RegisterGroupRequest& request, Now now,
                              Reply<proto::Empty> reply) {
  Event event(*this, now);
  parts_.groups.add(conn, request.spec(), now, std::move(reply));
}

void HeadCore::remove_group(ConnId conn, const proto::GroupRequest& request, Now now,
                            Reply<proto::Empty> reply) {
  Event event(*this, now);
  parts_.groups.remove(conn, request, now, std::move(reply));
}

void HeadCore::prepare_bundles_answered(const NodeId& node, const GroupId& group, int64_t epoch,
                                        const Result<proto::PrepareBundlesReply>& reply, Now now) {
  Event event(*this, now);
  parts_.groups.prepare_answered(node, group, epoch, reply, now);
}

Status HeadCore::subscribe(ConnId conn, const proto::SubscribeRequest& request, Now now) {
  Event event(*this, now);
  RT_TRY(parts_.subscriptions.add(conn, request,
                                  parts_.options.settings.subscriptions_per_connection));
  proto::HeadEvent current;
  if (request.nodes()) {
    for (const auto& [id, node] : parts_.cluster.nodes()) {
      if (node.alive()) *current.add_nodes() = parts_.cluster.announced(node, now);
    }
  }
  for (const std::string& id : request.actor_ids()) {
    const proto::ActorInfo* info =
        visible_actor(parts_.actors.directory(), ActorId::from_binary(id));
    if (!info) continue;
    *current.add_actors() = ActorDirectory::summary_of(*info);
    if (info->state() == proto::ACTOR_DEAD)
      parts_.subscriptions.actor_ended(ActorId::from_binary(id));
  }
  for (const std::string& bytes : request.group_ids()) {
    const GroupId id = GroupId::from_binary(bytes);
    auto info = parts_.groups.told(id);
    if (!info) continue;
    if (info->state() == proto::GROUP_REMOVED) parts_.subscriptions.group_ended(id);
    *current.add_groups() = *std::move(info);
  }
  if (current.nodes_size() + current.actors_size() + current.groups_size() > 0)
    parts_.sink.push(conn, current);
  return {};
}

Status HeadCore::publish_logs(ConnId conn, const proto::HeadEvent& event) {
  RT_TRY(node_over(parts_.cluster, conn, "publish logs"));
  parts_.subscriptions.publish_logs(event);
  return {};
}

void HeadCore::submit_job(const proto::SubmitJobRequest& request, Now now,
                          Reply<proto::SubmitJobReply> reply) {
  Event event(*this, now);
  parts_.submitted.submit(request, now, std::move(reply));
}

void HeadCore::stop_submitted_job(const std::string& submission_id, Now now,
                                  Reply<proto::StopJobReply> reply) {
  Event event(*this, now);
  parts_.submitted.stop(submission_id, now, std::move(reply));
}

void HeadCore::delete_submitted_job(const std::string& submission_id, Now now,
                                    Reply<proto::Empty> reply) {
  Event event(*this, now);
  parts_.submitted.remove(submission_id, std::move(reply));
}

void HeadCore::report_submitted_job(ConnId conn, const proto::SubmittedJob& report, Now now,
                                    Reply<proto::Empty> reply) {
  Event event(*this, now);
  auto node = node_over(parts_.cluster, conn, "submitted job");
  if (!node) return reply(node.error());
  parts_.submitted.report(**node, report, now, std::move(reply));
}

void HeadCore::start_job_answered(const std::string& submission_id, const NodeId& node,
                                  const Status& status, Now now) {
  Event event(*this, now);
  parts_.submitted.start_answered(submission_id, node, status, now);
}

void HeadCore::stop_job_answered(const std::string& submission_id,
                                 const Result<proto::StopJobReply>& reply, Now now) {
  Event event(*this, now);
  parts_.submitted.stop_answered(submission_id, reply);
}

}  // namespace rt::head
