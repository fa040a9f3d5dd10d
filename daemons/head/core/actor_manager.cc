#include "daemons/head/core/actor_manager.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::head {
namespace {

proto::ExitInfo orphaned(const WorkerId& owner) {
  return exit_info(proto::ExitInfo::OWNER_DIED,
                   fmt::format("worker {} that created it is gone", owner.hex()));
}

Status check_spec(const proto::ActorSpec& spec) {
  auto invalid = [](std::string text) {
    return make_error(Code::kInvalid, "actor: " + std::move(text));
  };
  if (!ActorId::is_valid(spec.actor_id()))
    return invalid(
        fmt::format("the actor id has {} bytes, not {}", spec.actor_id().size(), ActorId::kSize));
  if (!JobId::is_valid(spec.job_id()))
    return invalid(
        fmt::format("the job id has {} bytes, not {}", spec.job_id().size(), JobId::kSize));
  if (job_of(ActorId::from_binary(spec.actor_id())) != JobId::from_binary(spec.job_id()))
    return invalid("its actor id contains another job's id than the request");
  if (!spec.owner().worker_id().empty() && !WorkerId::is_valid(spec.owner().worker_id()))
    return invalid("the owner's worker id has a wrong size");
  if (!spec.owner().node_id().empty() && !NodeId::is_valid(spec.owner().node_id()))
    return invalid("the owner's node id has a wrong size");
  if (spec.max_restarts() < -1)
    return invalid(
        fmt::format("max_restarts is {}; give -1 (no limit) or more", spec.max_restarts()));
  for (const proto::Resources* resources : {&spec.placement(), &spec.creation().resources()}) {
    for (const auto& [name, units] : resources->units()) {
      if (name.empty() || units < 0 ||
          units > static_cast<int64_t>(ResourceSet::kMaxAmount) * ResourceSet::kUnit)
        return invalid(fmt::format("the amount of resource '{}' is out of range", name));
    }
  }
  if (!proto::SchedulingStrategy_IsValid(spec.creation().strategy()))
    return make_error(Code::kUnsupported,
                      fmt::format("the scheduling strategy {} is not known",
                                  static_cast<int>(spec.creation().strategy())));
  return {};
}

// Actors of a job may be created while it runs, and afterwards only by or for its detached actors.
Status check_job(const proto::ActorSpec& spec, const Jobs& jobs, ActorDirectory& directory) {
  JobId job = JobId::from_binary(spec.job_id());
  if (jobs.running(job)) return {};
  if (spec.job_config().outlives_job() && directory.any_of_job(job)) return {};
  if (!jobs.find(job))
    return make_error(Code::kNotFound,
                      fmt::format("job {} is not known to this cluster", job.hex()));
  if (!WorkerId::is_valid(spec.owner().worker_id()))
    return make_error(Code::kInvalid, "actor: the request lacks the owner's worker id");
  for (const Actor* actor : directory.of_job(job)) {
    if (actor->phase == Actor::Phase::kAlive &&
        actor->info.address().worker_id() == spec.owner().worker_id())
      return {};
  }
  return make_error(
      Code::kCancelled,
      fmt::format("job {} has finished: its processes create no more actors", job.hex()));
}

}  // namespace

ActorManager::ActorManager(Env env)
    : env_(env), placement_({env.options, env.cluster, env.subscriptions, env.groups, seats_}) {}

ActorManager::~ActorManager() = default;

void ActorManager::register_actor(const proto::RegisterActorRequest& request, Now now,
                                  Reply<proto::RegisterActorReply> reply) {
  const proto::ActorSpec& spec = request.spec();
  if (request.arguments() == proto::RegisterActorRequest::OF_REGISTERED)
    return take_arguments(spec, std::move(reply));
  if (Status valid = check_spec(spec); !valid) return reply(valid.error());
  ActorId id = ActorId::from_binary(spec.actor_id());
  auto answer = [reply, id](const Status& status) {
    if (!status) return reply(status.error());
    proto::RegisterActorReply out;
    out.set_actor_id(id.binary());
    reply(std::move(out));
  };
  // The request is a repeated one: its first answer was lost with the connection.
  if (Actor* same = directory_.find(id)) {
    if (same->phase == Phase::kCommitting) return same->on_committed.push_back(answer);
    return answer({});
  }
  if (!spec.name().empty()) {
    if (Actor* holder = directory_.find_named(spec.ray_namespace(), spec.name())) {
      if (!request.get_if_exists()) {
        return reply(make_error(
            Code::kAlreadyExists,
            fmt::format("The name {} (namespace={}) is already taken by another actor. Please use "
                        "a different name or get the existing actor using ray.get_actor('{}', "
                        "namespace='{}')",
                        spec.name(), spec.ray_namespace(), spec.name(), spec.ray_namespace())));
      }
      auto existing = [this, holder_id = holder->id, reply](const Status& status) {
        Actor* actor = directory_.find(holder_id);
        if (!status) return reply(status.error());
        if (!actor) return reply(make_error(Code::kNotFound, "the actor ended meanwhile"));
        proto::RegisterActorReply out;
        out.set_actor_id(actor->id.binary());
        out.set_existed(true);
        *out.mutable_existing() = actor->info;
        out.mutable_existing()->mutable_spec()->clear_args();
        reply(std::move(out));
      };
      if (holder->phase == Phase::kCommitting) return holder->on_committed.push_back(existing);
      return existing({});
    }
  }
  if (Status job = check_job(spec, env_.jobs, directory_); !job) return reply(job.error());

  proto::ActorInfo info;
  *info.mutable_spec() = spec;
  info.set_state(request.arguments() == proto::RegisterActorRequest::FOLLOW
                     ? proto::ACTOR_DEPENDENCIES_UNREADY
                     : proto::ACTOR_PENDING);
  info.set_epoch(1);
  info.set_start_time_ms(now.wall_us / 1000);
  Actor& actor = directory_.add(std::move(info));
  actor.on_committed.push_back(answer);
  persist(actor);
  env_.journal.then([this, id](const Status& status, Now when) { committed(id, status, when); });
}

void ActorManager::committed(const ActorId& id, const Status& status, Now now) {
  Actor* actor = directory_.find(id);
  if (!actor) return;
  std::vector<std::function<void(const Status&)>> waiting;
  waiting.swap(actor->on_committed);
  if (actor->phase == Phase::kCommitting) {
    const std::string& owner = actor->info.spec().owner().worker_id();
    if (!status) {
      directory_.remove(*actor);
    } else if (actor->ends_with_owner() && WorkerId::is_valid(owner) &&
               ended_.contains(WorkerId::from_binary(owner))) {
      finish(*actor, orphaned(WorkerId::from_binary(owner)), Process::kKill, now);
    } else if (actor->info.state() == proto::ACTOR_DEPENDENCIES_UNREADY) {
      move(*actor, Phase::kUnready);
    } else {
      queue(*actor, now);
    }
  }
  for (auto& answer : waiting) answer(status);
}

void ActorManager::take_arguments(const proto::ActorSpec& spec,
                                  Reply<proto::RegisterActorReply> reply) {
  Actor* actor = ActorId::is_valid(spec.actor_id())
                     ? directory_.find(ActorId::from_binary(spec.actor_id()))
                     : nullptr;
  if (!actor || actor->phase == Phase::kCommitting)
    return reply(make_error(Code::kNotFound,
                            fmt::format("actor {}: its arguments came, but it is not registered",
                                        to_hex(spec.actor_id()))));
  if (actor->phase == Phase::kUnready) {
    *actor->info.mutable_spec()->mutable_args() = spec.args();
    move(*actor, Phase::kWaiting);
  }
  // A repeated request waits for the disk as well: the first one's write may still be under way.
  if (!actor->dead()) persist(*actor);
  env_.journal.then([this, id = actor->id, reply](const Status& status, Now now) {
    Actor* actor = directory_.find(id);
    if (actor && actor->phase == Phase::kWaiting && actor->info.epoch() == 1 && !actor->recovered) {
      if (!status) {
        finish(
            *actor,
            exit_info(proto::ExitInfo::UNKNOWN,
                      "the constructor's arguments could not be stored: " + status.error().message),
            Process::kGone, now);
        return reply(status.error());
      }
      queue(*actor, now);
    }
    proto::RegisterActorReply out;
    out.set_actor_id(id.binary());
    reply(std::move(out));
  });
}

void ActorManager::kill(const proto::KillActorRequest& request, Now now,
                        Reply<proto::Empty> reply) {
  if (!ActorId::is_valid(request.actor_id()))
    return reply(
        make_error(Code::kInvalid, fmt::format("an actor id has {} bytes, not {}", ActorId::kSize,
                                               request.actor_id().size())));
  Actor* actor = directory_.find(ActorId::from_binary(request.actor_id()));
  if (!actor)
    return reply(make_error(Code::kNotFound, fmt::format("actor {} is not known to this cluster",
                                                         to_hex(request.actor_id()))));
  auto when_stored = [label = actor->label(), id = actor->id, reply](const Status& status, Now) {
    if (status) return reply(proto::Empty());
    reply(make_error(status.error().code,
                     fmt::format("actor {} {} is dead, but comes back if the head is started again "
                                 "before its end could be stored: {}. Make room, or kill it again "
                                 "to see whether that is done.",
                                 label, id.hex(), status.error().message)));
  };
  if (actor->dead()) {
    const bool had_process = !actor->info.address().worker_id().empty();
    if (had_process || env_.journal.settled()) return reply(proto::Empty());
    persist(*actor);
    return env_.journal.then(when_stored);
  }
  proto::ExitInfo why = exit_info(
      request.why() == proto::ExitInfo::UNKNOWN ? proto::ExitInfo::KILLED_BY_USER : request.why());
  why.set_for_good(request.no_restart());
  if (!request.no_restart()) {
    if (actor->on_node()) send_kill(*actor, why, request.graceful());
    return reply(proto::Empty());
  }
  if (request.graceful() && actor->phase == Phase::kAlive) {
    actor->ending = why;
    // It finishes the calls it has, and nobody can send it more, so another actor may take its
    // name without waiting.
    if (why.kind() == proto::ExitInfo::OUT_OF_SCOPE) directory_.give_up_name(*actor);
    send_kill(*actor, why, true);
    return reply(proto::Empty());
  }
  // The node of a process learns of its end and tells the next head. An actor without a process has
  // only its record.
  const bool has_process = actor->on_node();
  finish(*actor, std::move(why), Process::kKill, now);
  if (has_process) return reply(proto::Empty());
  env_.journal.then(when_stored);
}

void ActorManager::send_kill(Actor& actor, const proto::ExitInfo& why, bool graceful) {
  proto::KillWorkerRequest kill;
  kill.set_actor_id(actor.id.binary());
  kill.set_worker_id(actor.info.address().worker_id());
  kill.set_why(why.kind());
  kill.set_message(why.message());
  kill.set_graceful(graceful);
  kill.set_for_good(why.for_good());
  NodeState* node = env_.cluster.find(actor.node);
  if (node && node->usable()) env_.sink.kill_worker(node->link(), kill);
  // The request is kept although it was sent, because it may be lost with its connection.
  actor.pending_kill = std::move(kill);
}

void ActorManager::job_finished(const JobId& job, Now now) {
  for (Actor* actor : directory_.of_job(job)) {
    const bool undelivered = actor->phase == Phase::kUnready &&
                             actor->info.spec().owner().worker_id() == driver_worker_id(job).view();
    if (!actor->outlives_job() || undelivered)
      finish(*actor, exit_info(proto::ExitInfo::JOB_FINISHED), Process::kKill, now);
  }
}

void ActorManager::owners_dead(const std::vector<WorkerId>& workers, Now now) {
  for (const WorkerId& worker : workers) {
    ended_.add(worker);
    ended_now_.workers.push_back(worker);
    for (Actor* actor : directory_.owned_by(worker))
      finish(*actor, orphaned(worker), Process::kKill, now);
  }
}

void ActorManager::group_removed(const GroupId& group, const std::string& why, Now now) {
  for (Actor* actor : directory_.in_group(group)) {
    // An actor that is not on disk yet ends when it is queued.
    if (actor->phase != Phase::kCommitting)
      finish(*actor, exit_info(proto::ExitInfo::GROUP_REMOVED, why), Process::kKill, now);
  }
  seats_.forget(group);
}

void ActorManager::recover(proto::ActorInfo info, Now now) {
  if (info.state() == proto::ACTOR_DEAD) return directory_.recover_dead(std::move(info));
  NodeState* node = env_.cluster.find(NodeId::from_binary(info.address().node_id()));
  bool was_alive = info.state() == proto::ACTOR_ALIVE;
  bool was_restarting = info.state() == proto::ACTOR_RESTARTING;
  const proto::ActorSpec& spec = info.spec();
  if (!spec.name().empty()) {
    // A full disk may have kept the record of a dead actor whose name was given away since. Then
    // the name belongs to the actor that started later.
    if (Actor* holder = directory_.find_named(spec.ray_namespace(), spec.name())) {
      if (holder->info.start_time_ms() >= info.start_time_ms())
        return env_.journal.erase(table::kActors, spec.actor_id());
      finish(*holder, exit_info(proto::ExitInfo::UNKNOWN, "a later actor has its name"),
             Process::kKill, now);
    }
  }
  Actor& actor = directory_.add(std::move(info));
  actor.alive_since_us = now.steady_us;
  actor.least_epoch = env_.incarnation << 32;
  if (was_alive && node) {
    move(actor, Phase::kWaiting);
    move(actor, Phase::kAlive, node);
    return;
  }
  if (actor.info.state() == proto::ACTOR_DEPENDENCIES_UNREADY) return move(actor, Phase::kUnready);
  if (was_alive || was_restarting) actor.info.set_state(proto::ACTOR_RESTARTING);
  move(actor, Phase::kWaiting);
  actor.recovered = true;
}

void ActorManager::nodes_settled(Now now) {
  settled_ = true;
  std::vector<ActorId> waiting;
  for (const auto& [id, actor] : directory_.all()) {
    if (actor.phase == Phase::kWaiting && actor.recovered) waiting.push_back(id);
  }
  std::sort(waiting.begin(), waiting.end());
  for (const ActorId& id : waiting) {
    Actor& actor = *directory_.find(id);
    actor.recovered = false;
    if (actor.info.address().worker_id().empty()) {
      next_start(actor, 0, now);
      // The actor was alive on a node of which not even a record exists.
    } else {
      lost(actor, exit_info(proto::ExitInfo::NODE_DIED, "its node left while the head was away"),
           now);
    }
  }
}

void ActorManager::end_event(Now now) {
  while (!dead_owners_.empty()) {
    std::vector<WorkerId> owners;
    owners.swap(dead_owners_);
    owners_dead(owners, now);
  }
  if (placement_wanted_) place(now);
  for (const ActorId& id : directory_.forget_dead(env_.options.settings.dead_actors_kept))
    env_.journal.erase(table::kActors, id.binary());
}

void ActorManager::persist(const Actor& actor) {
  env_.journal.put(table::kActors, actor.id.binary(), actor.info.SerializeAsString());
}

void ActorManager::publish(const Actor& actor) {
  env_.subscriptions.publish_actor(actor.id, ActorDirectory::summary_of(actor.info));
  if (actor.info.state() == proto::ACTOR_DEAD) env_.subscriptions.actor_ended(actor.id);
}

void ActorManager::check_invariants() const {
  directory_.check_invariants();
  std::map<NodeId, std::pair<ResourceSet, ResourceSet>> sums;
  std::map<NodeId, int> counts;
  for (const auto& [id, actor] : directory_.all()) {
    if (actor.on_node()) {
      const NodeState* node = env_.cluster.find(actor.node);
      RT_CHECK(node && node->alive());
      sums[actor.node].first.add(actor.claim());
      sums[actor.node].second.add(actor.load());
      ++counts[actor.node];
    }
    if (!actor.dead() && !actor.detached() && env_.jobs.find(actor.job) &&
        !env_.jobs.running(actor.job)) {
      // Only actors owned by a detached actor outlive their job.
      RT_CHECK(WorkerId::is_valid(actor.info.spec().owner().worker_id()));
    }
  }
  for (const auto& [id, node] : env_.cluster.nodes()) {
    RT_CHECK(node.actors_hold == sums[id].first && node.actors_placed == sums[id].second &&
             node.actors == counts[id]);
    for (const auto& [who, reservation] : node.reserved.claims) {
      if (!std::holds_alternative<ActorId>(who)) continue;
      const Actor* holder = directory_.find(std::get<ActorId>(who));
      RT_CHECK(holder && holder->node == id);
    }
  }
}

}  // namespace rt::head
