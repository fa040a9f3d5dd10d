// NodeCore: actors from CreateActor to their death.
#include <fmt/core.h>

#include <algorithm>

#include "daemons/node_manager/core/node_core.h"
#include "daemons/node_manager/core/runtime_env.h"

namespace rt::node {
namespace {

HostedActor hosted(const proto::CreateActorRequest& request, bool outlives_job) {
  HostedActor actor;
  actor.request = request;
  actor.id = ActorId::from_binary(request.spec().actor_id());
  actor.job = JobId::from_binary(request.spec().job_id());
  actor.outlives_job = outlives_job;
  const proto::TaskTemplate& creation = request.spec().creation();
  actor.lifetime = ResourceSet::from_proto(creation.resources());
  actor.placement = ResourceSet::from_proto(request.spec().placement());
  // Placement must cover what the actor holds afterwards.
  for (const auto& [name, units] : actor.lifetime.all()) {
    if (actor.placement.units(name) < units) actor.placement.set_units(name, units);
  }
  proto::Language language = creation.function().language();
  actor.kind = {
      language,
      language == proto::LANGUAGE_PYTHON ? request.spec().job_config().python_executable() : "",
      creation.runtime_env(), actor.placement.units("GPU") > 0};
  return actor;
}

// Sets the room of an actor that has a group: the bundle that the head chose, or if it left that to
// the node, one that has room, else one that is large enough. Returns false if there is none.
bool choose_room(HostedActor& actor, const Rooms& rooms) {
  const GroupId group = GroupId::from_binary(actor.request.spec().creation().group_id());
  const std::vector<RoomKey> keys = rooms.bundles().candidates(
      {group, std::max(actor.request.bundle_index(), -1)}, actor.placement);
  if (keys.empty()) return false;
  auto now = std::find_if(keys.begin(), keys.end(),
                          [&](const RoomKey& key) { return rooms.at(key).fits(actor.placement); });
  actor.room = now == keys.end() ? keys.front() : *now;
  return true;
}

}  // namespace

void NodeCore::create_actor(const proto::CreateActorRequest& request, Now now) {
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
  if (auto known = actors_.find(id); known != actors_.end()) {
    HostedActor& actor = known->second;
    if (actor.request.epoch() == request.epoch()) {
      // A head that has restarted repeats the request. If the actor is still starting, this
      // request is answered together with the first one.
      if (actor.state != HostedActor::State::kAlive) return;
      proto::CreateActorReply reply;
      const Worker& worker = *pool_.find(actor.worker);
      reply.set_ok(true);
      *reply.mutable_address() = address_of(worker);
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
    actors_.erase(id);
  }
  // The head may not have heard yet how this incarnation ended.
  if (const ActorEnds::End* end = actor_ends_.find(id); end && request.epoch() <= end->epoch) {
    if (request.epoch() < end->epoch)
      return refuse_with(proto::ExitInfo::UNKNOWN,
                         "a later incarnation of the actor has ended here already");
    proto::CreateActorReply reply;
    *reply.mutable_failure() = end->info;
    return sink_.actor_created(id, request.epoch(), reply);
  }
  HostedActor& actor = actors_[id] = hosted(request, outlives_job);
  actor.since_us = now.steady_us;
  waiting_actors_.push_back(id);
  if (std::string why = unplaceable(actor); !why.empty()) {
    proto::ExitInfo info;
    info.set_kind(proto::ExitInfo::UNSCHEDULABLE);
    info.set_message(why);
    return fail_creation(actor, info, true, now);
  }
  pump(now);
}

std::string NodeCore::unplaceable(HostedActor& actor) const {
  if (drain_) return fmt::format("node {} is leaving the cluster", me_.ip);
  const std::string& group = actor.request.spec().creation().group_id();
  if (!group.empty()) {
    if (choose_room(actor, rooms_)) return "";
    return fmt::format("node {} has no room for it: it needs {}", me_.ip,
                       rooms_.bundles().obstacle({GroupId::from_binary(group),
                                                  std::max(actor.request.bundle_index(), -1)},
                                                 actor.placement));
  }
  return feasible_here(actor.placement)
             ? ""
             : fmt::format("node {} has no {}", me_.ip, actor.placement.to_string());
}

// Whether there is room that is not kept for bundles.
bool NodeCore::has_room_for(const HostedActor& actor) const {
  const Room& room = rooms_.at(actor.room);
  if (!room.fits(actor.placement)) return false;
  if (!actor.room.is_node() || bundle_line_.aside().empty()) return true;
  ResourceSet free = room.resources().available();
  free.subtract_allowing_debt(bundle_line_.aside());
  return free.contains(actor.placement);
}

void NodeCore::place_actors(Now now) {
  using State = HostedActor::State;
  for (size_t i = 0; i < waiting_actors_.size();) {
    HostedActor& actor = actors_.at(waiting_actors_[i]);
    if (actor.state == State::kWaitingResources && has_room_for(actor)) {
      Room& room = rooms_.change(actor.room);
      actor.gpus = room.take(actor.placement);
      for (std::string& name : room.gpus().names(actor.gpus))
        actor.request.add_gpu_ids(std::move(name));
      actor.state = State::kWaitingWorker;
      actor.since_us = now.steady_us;
    }
    if (actor.state == State::kWaitingResources &&
        now.steady_us - actor.since_us > settings_.actor_placement_wait_ms * 1000) {
      proto::ExitInfo info;
      info.set_kind(proto::ExitInfo::UNSCHEDULABLE);
      info.set_message(
          fmt::format("{} did not have {} free in time",
                      actor.room.is_node() ? "node " + me_.ip : bundle_name(actor.room),
                      actor.placement.to_string()));
      fail_creation(actor, info, true, now);
      continue;
    }
    Worker* worker = actor.state == State::kWaitingWorker ? pool_.unused(actor.kind) : nullptr;
    if (!worker) {
      if (actor.state == State::kWaitingWorker) starts_.need_for_actor(actor.kind);
      ++i;
      continue;
    }
    pool_.set_state(*worker, WorkerState::kActor, now.steady_us);
    worker->job = actor.job;
    worker->outlives_job = actor.outlives_job;
    worker->actor = actor.id;
    worker->room = actor.room;
    worker->held = actor.placement;
    worker->gpus = std::exchange(actor.gpus, {});
    actor.worker = worker->id;
    actor.state = State::kStarting;
    waiting_actors_.erase(waiting_actors_.begin() + static_cast<std::ptrdiff_t>(i));
    sink_.start_actor(worker->id, actor.request);
  }
}

// Fails an actor that has no worker yet. `actor` is erased, so the reference is invalid
// afterwards.
void NodeCore::fail_creation(HostedActor& actor, const proto::ExitInfo& why, bool no_resources,
                             Now) {
  proto::CreateActorReply reply;
  *reply.mutable_failure() = why;
  reply.set_no_resources(no_resources);
  if (actor.state == HostedActor::State::kWaitingWorker)
    rooms_.change(actor.room).give_back(actor.placement, actor.gpus);
  ActorId id = actor.id;
  int64_t epoch = actor.request.epoch();
  std::erase(waiting_actors_, id);
  actors_.erase(id);
  sink_.actor_created(id, epoch, reply);
}

void NodeCore::actor_start_done(const ActorId& id, int64_t epoch,
                                const Result<proto::CreateActorReply>& answer, Now now) {
  auto it = actors_.find(id);
  if (it == actors_.end() || it->second.request.epoch() != epoch ||
      it->second.state != HostedActor::State::kStarting)
    return;
  HostedActor& actor = it->second;
  Worker* worker = pool_.find(actor.worker);
  if (!worker || worker->state != WorkerState::kActor) return;  // finish() will answer
  if (answer && answer->ok()) {
    actor.state = HostedActor::State::kAlive;
    ResourceSet before = releasable_resources(*worker);
    worker->held = actor.lifetime;
    rooms_.change(worker->room).exchange(before, releasable_resources(*worker));
    proto::CreateActorReply reply;
    reply.set_ok(true);
    *reply.mutable_address() = address_of(*worker);
    reply.set_pid(worker->pid);
    sink_.actor_created(id, epoch, reply);
  } else if (answer) {
    proto::CreateActorReply reply = *answer;
    reply.set_ok(false);
    proto::ExitInfo& failure = *reply.mutable_failure();
    if (failure.kind() == proto::ExitInfo::UNKNOWN) failure.set_kind(proto::ExitInfo::INIT_FAILED);
    failure.set_node_id(me_.id.binary());
    failure.set_ip(me_.ip);
    failure.set_pid(worker->pid);
    failure.set_worker_id(worker->id.binary());
    release_held(*worker);
    worker->actor = ActorId::nil();
    pool_.set_state(*worker, WorkerState::kDying, now.steady_us);
    actors_.erase(it);
    actor_ends_.record(id, epoch, failure);
    end_worker(*worker, proto::ExitInfo::INIT_FAILED, "the constructor of its actor failed", now);
    sink_.actor_created(id, epoch, reply);
  } else {
    // A worker that closed its connection is ending, and its exit status says why.
    bool leaves = answer.error().code == Code::kUnavailable;
    end_worker(*worker, proto::ExitInfo::UNKNOWN,
               leaves ? "" : "its actor could not be started: " + answer.error().message, now);
  }
  pump(now);
}

// Reports the end of an actor whose process has been reaped.
void NodeCore::actor_lost(const ActorId& id, const proto::ExitInfo& info) {
  auto it = actors_.find(id);
  if (it == actors_.end() || it->second.worker != WorkerId::from_binary(info.worker_id()))
    return;  // a later incarnation has taken its place
  int64_t epoch = it->second.request.epoch();
  bool alive = it->second.state == HostedActor::State::kAlive;
  actors_.erase(it);
  actor_ends_.record(id, epoch, info);
  if (alive) {
    proto::ActorDied died;
    died.set_actor_id(id.binary());
    died.set_epoch(epoch);
    *died.mutable_death() = info;
    sink_.actor_died(died);
  } else {
    proto::CreateActorReply reply;
    *reply.mutable_failure() = info;
    sink_.actor_created(id, epoch, reply);
  }
}

void NodeCore::kill(const proto::KillWorkerRequest& request, Now now) {
  WorkerId worker_id = WorkerId::from_binary(request.worker_id());
  if (auto it = actors_.find(ActorId::from_binary(request.actor_id()));
      !request.actor_id().empty() && it != actors_.end()) {
    HostedActor& actor = it->second;
    if (actor.state == HostedActor::State::kWaitingResources ||
        actor.state == HostedActor::State::kWaitingWorker) {
      proto::ExitInfo info;
      info.set_kind(request.why());
      info.set_message(request.message());
      fail_creation(actor, info, false, now);
      return pump(now);
    }
    worker_id = actor.worker;
  }
  Worker* worker = worker_id.is_nil() ? nullptr : pool_.find(worker_id);
  if (!worker || worker->state == WorkerState::kDriver) return;
  if (request.for_good()) worker->intent.set_for_good(true);
  std::string message = request.message().empty() ? "the head asked for it" : request.message();
  if (request.graceful() && worker->connected && worker->state != WorkerState::kDying) {
    // The worker finishes its queue first and keeps its resources until then.
    worker->intent.set_kind(request.why());
    worker->intent.set_message(message);
    return ask_to_leave(*worker, request, now);
  }
  if (request.why() == proto::ExitInfo::UNKNOWN && !worker->dismissed) {
    end_worker(*worker, request.why(), message, now);  // another incarnation takes its place
  } else {
    // Also a killed worker gets a moment to send the task events it has recorded; its user code
    // has no say in that.
    dismiss_worker(*worker, request.why(), message, now);
  }
  pump(now);
}

}  // namespace rt::node
