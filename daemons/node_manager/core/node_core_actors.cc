// NodeCore: actors from CreateActor to their death.
#include <fmt/core.h>

#include "daemons/node_manager/core/node_core.h"
#include "daemons/node_manager/core/runtime_env.h"

namespace rt::node {

void NodeCore::create_actor(const proto::CreateActorRequest& request, Now now) {
  const Event event(*this, now);
  ActorId id = ActorId::from_binary(request.spec().actor_id());
  auto refuse_with = [&](proto::ExitInfo::Kind kind, const std::string& message) {
    proto::CreateActorReply reply;
    reply.mutable_failure()->set_kind(kind);
    reply.mutable_failure()->set_message(message);
    reply.mutable_failure()->set_node_id(me_.id.binary());
    sink_.actor_created(id, request.epoch(), reply);
  };
  JobId job = JobId::from_binary(request.spec().job_id());
  if (id.is_nil() || job.is_nil())
    return refuse_with(proto::ExitInfo::UNKNOWN,
                       "the actor's specification has no valid actor and job id");
  if (request.spec().creation().runtime_env().size() > kMaxRuntimeEnvBytes)
    return refuse_with(
        proto::ExitInfo::INIT_FAILED,
        fmt::format("a runtime environment of {} bytes is too large: {} are accepted",
                    request.spec().creation().runtime_env().size(), kMaxRuntimeEnvBytes));
  if (stopping_) return refuse_with(proto::ExitInfo::NODE_DIED, "the node is leaving the cluster");
  const bool outlives_job = request.spec().detached() || request.spec().job_config().outlives_job();
  if (finished_jobs_.contains(job) && !outlives_job)
    return refuse_with(proto::ExitInfo::JOB_FINISHED, "its job finished");
  if (const HostedActor* known = actors_.find(id)) {
    const HostedActor& actor = *known;
    if (actor.request.epoch() == request.epoch()) {
      // A head that has restarted repeats the request. If the actor is still starting, this
      // request is answered together with the first one.
      if (actor.state != HostedActor::State::kAlive) return;
      proto::CreateActorReply reply;
      const Worker& worker = *workers_.pool().find(actor.worker);
      reply.set_ok(true);
      *reply.mutable_address() = workers_.address_of(worker);
      reply.set_pid(worker.pid);
      return sink_.actor_created(id, request.epoch(), reply);
    }
    if (actor.request.epoch() > request.epoch())
      return refuse_with(proto::ExitInfo::UNKNOWN,
                         "a later incarnation of the actor is here already");
    // The head considers the earlier incarnation gone.
    proto::KillWorkerRequest kill_old;
    kill_old.set_actor_id(id.binary());
    kill_old.set_message("a new incarnation of the actor takes its place");
    kill(kill_old, now);
    actors_.forget(id);
  }
  // The head may not have heard yet how this incarnation ended.
  if (const ActorEnds::End* end = actors_.last_end(id); end && request.epoch() <= end->epoch) {
    if (request.epoch() < end->epoch)
      return refuse_with(proto::ExitInfo::UNKNOWN,
                         "a later incarnation of the actor has ended here already");
    proto::CreateActorReply reply;
    *reply.mutable_failure() = end->info;
    return sink_.actor_created(id, request.epoch(), reply);
  }
  if (actors_.add(request, outlives_job, drain_.has_value(), now)) pump(now);
}

void NodeCore::actor_start_done(const ActorId& id, int64_t epoch,
                                const Result<proto::CreateActorReply>& answer, Now now) {
  const Event event(*this, now);
  const HostedActor* known = actors_.find(id);
  if (!known || known->request.epoch() != epoch || known->state != HostedActor::State::kStarting)
    return;
  const HostedActor& actor = *known;
  Worker* worker = workers_.pool().find(actor.worker);
  if (!worker || worker->state != WorkerState::kActor) return;  // ended() will answer
  if (answer && answer->ok()) {
    ResourceSet before = releasable_resources(*worker);
    worker->held = actor.lifetime;
    rooms_.change(worker->room).exchange(before, releasable_resources(*worker));
    proto::CreateActorReply reply;
    reply.set_ok(true);
    *reply.mutable_address() = workers_.address_of(*worker);
    reply.set_pid(worker->pid);
    actors_.set_alive(id, reply);
  } else if (answer) {
    proto::CreateActorReply reply = *answer;
    reply.set_ok(false);
    proto::ExitInfo& failure = *reply.mutable_failure();
    if (failure.kind() == proto::ExitInfo::UNKNOWN) failure.set_kind(proto::ExitInfo::INIT_FAILED);
    failure.set_node_id(me_.id.binary());
    failure.set_ip(me_.ip);
    failure.set_pid(worker->pid);
    failure.set_worker_id(worker->id.binary());
    workers_.release_held(*worker);
    worker->actor = ActorId::nil();
    workers_.pool().set_state(*worker, WorkerState::kDying, now);
    workers_.end(*worker, proto::ExitInfo::INIT_FAILED, "the constructor of its actor failed", now);
    actors_.set_failed(id, reply);
  } else {
    // A worker that closed its connection is ending, and its exit status says why.
    bool leaves = answer.error().code == Code::kUnavailable;
    workers_.end(*worker, proto::ExitInfo::UNKNOWN,
                 leaves ? "" : "its actor could not be started: " + answer.error().message, now);
  }
  pump(now);
}

void NodeCore::kill(const proto::KillWorkerRequest& request, Now now) {
  const Event event(*this, now);
  WorkerId worker_id = WorkerId::from_binary(request.worker_id());
  const ActorId actor_id = ActorId::from_binary(request.actor_id());
  // A request that names a process is not meant for a later start of its actor.
  if (const HostedActor* actor = actors_.find(actor_id);
      actor && (worker_id.is_nil() || worker_id == actor->worker)) {
    if (actor->state == HostedActor::State::kWaitingResources ||
        actor->state == HostedActor::State::kWaitingWorker) {
      proto::ExitInfo info;
      info.set_kind(request.why());
      info.set_message(request.message());
      actors_.fail_waiting(actor_id, info, false);
      return pump(now);
    }
    worker_id = actor->worker;
  }
  Worker* worker = worker_id.is_nil() ? nullptr : workers_.pool().find(worker_id);
  if (!worker || worker->state == WorkerState::kDriver) return;
  if (request.for_good()) worker->intent.set_for_good(true);
  std::string message = request.message().empty() ? "the head asked for it" : request.message();
  if (request.graceful() && worker->connected && worker->state != WorkerState::kDying) {
    // The worker finishes its queue first and keeps its resources until then.
    worker->intent.set_kind(request.why());
    worker->intent.set_message(message);
    return workers_.ask_to_leave(*worker, request, now);
  }
  if (request.why() == proto::ExitInfo::UNKNOWN && !worker->dismissed) {
    workers_.end(*worker, request.why(), message, now);  // another incarnation takes its place
  } else {
    // A killed worker, too, gets a moment to send the task events it has recorded; its user code
    // has no say in that.
    workers_.dismiss(*worker, request.why(), message, now);
  }
  pump(now);
}

}  // namespace rt::node
