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
  const NodeState* node = cluster_.find(NodeId::from_binary(request.node_id()));
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
    out.set_cluster_id(cluster_id_);
    out.set_session_name(options_.session_name);
    return out;
  };
  // A driver that repeats its request lost the answer with its connection, and gets the same job.
  // If the first request has yet to be committed, this answer comes before the commit.
  if (const proto::JobInfo* same = jobs_.of_driver(request)) return reply(answer(*same));

  const proto::JobInfo& job = jobs_.add(request, new_namespace(rng_), now);
  JobId id = JobId::from_binary(job.job_id());
  std::string submission_id = job.config().submission_id();
  if (submission_id.empty()) {
    auto it = job.config().metadata().find("job_submission_id");
    if (it != job.config().metadata().end()) submission_id = it->second;
  }
  journal_.then(
      [this, id, submission_id, answer, reply = std::move(reply)](const Status& status, Now) {
        if (!status) {
          if (jobs_.running(id)) jobs_.remove(id);
          return reply(status.error());
        }
        if (!submission_id.empty()) submitted_.link(submission_id, id);
        const proto::JobInfo* job = jobs_.find(id);
        if (job) {
          sink_.log(fmt::format("job {} of driver {} on {} has begun", id.hex(), job->driver_pid(),
                                job->driver_ip()));
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
  if (!jobs_.find(id))
    return make_error(Code::kNotFound,
                      fmt::format("job {} is not known to this cluster", id.hex()));
  end_job(id, now);
  return {};
}

void HeadCore::end_job(const JobId& id, Now now) {
  if (!jobs_.finish(id, now)) return;
  sink_.log(fmt::format("job {} has ended", id.hex()));
  ended_now_.add_finished_jobs(id.binary());
  actors_.job_finished(id, now);
  groups_.job_finished(id, now);
  if (!actors().any_of_job(id)) job_over(id);
}

// A detached actor may need code and data of its job for its next start, so these stay until the
// job's last actor is gone.
void HeadCore::job_over(const JobId& id) {
  kv_.release_job(id);
  ended_now_.add_over_jobs(id.binary());
}

proto::GetJobsReply HeadCore::get_jobs() const {
  proto::GetJobsReply reply;
  for (const auto& [number, job] : jobs_.all()) *reply.add_jobs() = job;
  return reply;
}

void HeadCore::kv_put(const proto::KvPutRequest& request, Now now, Reply<proto::KvPutReply> reply) {
  Event event(*this, now);
  if (request.ns() == Packages::kNamespace) {
    if (Status room = packages_.make_room(
            request,
            [this](const std::string& name) {
              return names_package(name, submitted_, jobs_, actors_);
            },
            now);
        !room)
      return reply(room.error());
  }
  kv_.put(request, std::move(reply));
}

void HeadCore::kv_delete(const proto::KvGetRequest& request, Now now,
                         Reply<proto::KvPutReply> reply) {
  Event event(*this, now);
  kv_.erase(request, std::move(reply));
}

void HeadCore::register_actor(const proto::RegisterActorRequest& request, Now now,
                              Reply<proto::RegisterActorReply> reply) {
  Event event(*this, now);
  actors_.register_actor(request, now, std::move(reply));
}

void HeadCore::kill_actor(const proto::KillActorRequest& request, Now now,
                          Reply<proto::Empty> reply) {
  Event event(*this, now);
  actors_.kill(request, now, std::move(reply));
}

void HeadCore::create_actor_answered(const NodeId& node, const ActorId& actor, int64_t epoch,
                                     const Result<proto::CreateActorReply>& reply, Now now) {
  Event event(*this, now);
  actors_.create_answered(node, actor, epoch, reply, now);
}

Status HeadCore::actor_started(ConnId conn, const proto::ActorStarted& report, Now now) {
  Event event(*this, now);
  RT_ASSIGN(NodeState * node, node_over(cluster_, conn, "actor started"));
  RT_TRY(check_size<ActorId>(report.actor_id(), "actor started: the actor id"));
  actors_.started(*node, ActorId::from_binary(report.actor_id()), report, now);
  return {};
}

Status HeadCore::actor_died(ConnId conn, const proto::ActorDied& report, Now now) {
  Event event(*this, now);
  RT_ASSIGN(NodeState * node, node_over(cluster_, conn, "actor died"));
  RT_TRY(check_size<ActorId>(report.actor_id(), "actor died: the actor id"));
  actors_.died(*node, ActorId::from_binary(report.actor_id()), report, now);
  return {};
}

Status HeadCore::dead_workers(ConnId conn, const proto::DeadWorkers& report, Now now) {
  Event event(*this, now);
  RT_TRY(node_over(cluster_, conn, "dead workers"));
  std::vector<WorkerId> workers;
  proto::HeadEvent news;
  for (const std::string& id : report.worker_ids()) {
    RT_TRY(check_size<WorkerId>(id, "dead workers: a worker id"));
    workers.push_back(WorkerId::from_binary(id));
    news.add_dead_workers(id);
  }
  actors_.owners_dead(workers, now);
  if (!workers.empty()) cluster_.broadcast(news);
  return {};
}

void HeadCore::register_group(ConnId conn, const proto::RegisterGroupRequest& request, Now now,
                              Reply<proto::Empty> reply) {
  Event event(*this, now);
  groups_.add(conn, request.spec(), now, std::move(reply));
}

void HeadCore::remove_group(ConnId conn, const proto::GroupRequest& request, Now now,
                            Reply<proto::Empty> reply) {
  Event event(*this, now);
  groups_.remove(conn, request, now, std::move(reply));
}

void HeadCore::prepare_bundles_answered(const NodeId& node, const GroupId& group, int64_t epoch,
                                        const Result<proto::PrepareBundlesReply>& reply, Now now) {
  Event event(*this, now);
  groups_.prepare_answered(node, group, epoch, reply, now);
}

Status HeadCore::subscribe(ConnId conn, const proto::SubscribeRequest& request, Now now) {
  Event event(*this, now);
  RT_TRY(subscriptions_.add(conn, request, options_.settings.subscriptions_per_connection));
  proto::HeadEvent current;
  if (request.nodes()) {
    for (const auto& [id, node] : cluster_.nodes()) {
      if (node.alive()) *current.add_nodes() = cluster_.announced(node, now);
    }
  }
  for (const std::string& id : request.actor_ids()) {
    const proto::ActorInfo* info = visible_actor(actors(), ActorId::from_binary(id));
    if (!info) continue;
    *current.add_actors() = ActorDirectory::summary_of(*info);
    if (info->state() == proto::ACTOR_DEAD) subscriptions_.actor_ended(ActorId::from_binary(id));
  }
  for (const std::string& bytes : request.group_ids()) {
    const GroupId id = GroupId::from_binary(bytes);
    auto info = groups_.told(id);
    if (!info) continue;
    if (info->state() == proto::GROUP_REMOVED) subscriptions_.group_ended(id);
    *current.add_groups() = *std::move(info);
  }
  if (current.nodes_size() + current.actors_size() + current.groups_size() > 0)
    sink_.push(conn, current);
  return {};
}

Status HeadCore::publish_logs(ConnId conn, const proto::HeadEvent& event) {
  RT_TRY(node_over(cluster_, conn, "publish logs"));
  subscriptions_.publish_logs(event);
  return {};
}

void HeadCore::submit_job(const proto::SubmitJobRequest& request, Now now,
                          Reply<proto::SubmitJobReply> reply) {
  Event event(*this, now);
  submitted_.submit(request, now, std::move(reply));
}

Result<proto::SubmittedJob> HeadCore::submitted_job(const std::string& submission_id) const {
  RT_ASSIGN(const proto::SubmittedJob* job, submitted_.find(submission_id));
  return *job;
}

void HeadCore::stop_submitted_job(const std::string& submission_id, Now now,
                                  Reply<proto::StopJobReply> reply) {
  Event event(*this, now);
  submitted_.stop(submission_id, now, std::move(reply));
}

void HeadCore::delete_submitted_job(const std::string& submission_id, Now now,
                                    Reply<proto::Empty> reply) {
  Event event(*this, now);
  submitted_.remove(submission_id, std::move(reply));
}

void HeadCore::report_submitted_job(ConnId conn, const proto::SubmittedJob& report, Now now,
                                    Reply<proto::Empty> reply) {
  Event event(*this, now);
  auto node = node_over(cluster_, conn, "submitted job");
  if (!node) return reply(node.error());
  submitted_.report(**node, report, now, std::move(reply));
}

void HeadCore::start_job_answered(const std::string& submission_id, const NodeId& node,
                                  const Status& status, Now now) {
  Event event(*this, now);
  submitted_.start_answered(submission_id, node, status, now);
}

void HeadCore::stop_job_answered(const std::string& submission_id,
                                 const Result<proto::StopJobReply>& reply, Now now) {
  Event event(*this, now);
  submitted_.stop_answered(submission_id, reply);
}

}  // namespace rt::head
