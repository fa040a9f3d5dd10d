// Starts, deaths, restarts and reconciliation of actors. See actor_manager.h.
#include <fmt/core.h>

#include <algorithm>

#include "daemons/head/core/actor_manager.h"

namespace rt::head {
namespace {

// An actor that lived this long was healthy, so its next restart is not delayed.
constexpr int64_t kHealthyLifeUs = 1'000'000;
// Each short life doubles the pause before the next start. A life takes one doubling back for each
// of these periods that it lasted, so that only an actor that dies at once meets the longest pause.
constexpr int64_t kHealingUs = kHealthyLifeUs / 10;
constexpr int64_t kFirstBackoffUs = 50'000;

// Whether the node holds the bundle in which the actor runs, if it is in a placement group.
bool bundle_is_here(const Actor& actor, const GroupDirectory& groups, const NodeId& node) {
  if (!actor.seat.group) return true;
  const Group* group = groups.find(*actor.seat.group);
  if (!group) return false;
  if (actor.wanted_bundle() >= 0) return group->node_of(actor.wanted_bundle()) == node;
  return group->nodes.contains(node);
}

// Returns null if no actor has this id, or if it is not a valid id.
Actor* actor_with(ActorDirectory& directory, const std::string& id) {
  return ActorId::is_valid(id) ? directory.find(ActorId::from_binary(id)) : nullptr;
}

// Whether this start of the actor is the current one, and the node the one that it runs on or may
// be brought back by.
bool is_awaited(const Actor& actor, int64_t epoch, const NodeId& node) {
  if (actor.info.epoch() != epoch) return false;
  return actor.on_node() ? actor.node == node
                         : actor.phase == Actor::Phase::kWaiting && actor.recovered;
}

bool ends_for_good(const proto::ExitInfo& death) {
  if (death.for_good()) return true;
  switch (death.kind()) {
    case proto::ExitInfo::INTENTIONAL:
    case proto::ExitInfo::OUT_OF_SCOPE:
    case proto::ExitInfo::JOB_FINISHED:
    case proto::ExitInfo::OWNER_DIED:
    case proto::ExitInfo::GROUP_REMOVED:
    case proto::ExitInfo::INIT_FAILED: return true;
    default: return false;
  }
}

void log_end(HeadSink& sink, const Actor& actor, const proto::ExitInfo& death, const char* what) {
  sink.log(fmt::format("actor {} {} {}: {} {}", actor.label(), actor.id.hex(), what,
                       proto::ExitInfo::Kind_Name(death.kind()), death.message()));
}

int64_t backoff_us(int failures, int64_t max_ms) {
  return std::min(max_ms * 1000, kFirstBackoffUs << std::min(failures, 20));
}

// Ends a process of a start that is not the actor's current one.
void kill_stray(HeadSink& sink, const NodeState& node, const ActorId& id,
                const std::string& worker_id, const char* why) {
  if (!node.usable()) return;
  proto::KillWorkerRequest kill;
  kill.set_actor_id(id.binary());
  kill.set_worker_id(worker_id);
  kill.set_why(proto::ExitInfo::UNKNOWN);
  kill.set_message(why);
  sink.kill_worker(node.link(), kill);
}

}  // namespace

void ActorManager::queue(Actor& actor, Now now) {
  actor.queued_since_us = now.steady_us;
  move(actor, Phase::kQueued);
  placement_wanted_ = true;
}

void ActorManager::next_start(Actor& actor, int64_t delay_us, Now now) {
  actor.info.set_epoch(std::max(actor.info.epoch() + 1, actor.least_epoch));
  actor.info.clear_address();
  actor.info.clear_pid();
  actor.pending_kill.reset();
  if (actor.phase != Phase::kWaiting) move(actor, Phase::kWaiting);
  persist(actor);
  publish(actor);
  auto due = [this, id = actor.id, epoch = actor.info.epoch()](Now when) {
    Actor* actor = directory_.find(id);
    if (!actor || actor->phase != Phase::kWaiting || actor->info.epoch() != epoch) return;
    actor->delay_timer = 0;
    queue(*actor, when);
  };
  int64_t due_us = now.steady_us + delay_us;
  // If the disk refuses the epoch, the start happens anyway: two starts could be confused only if
  // the head crashed as well.
  env_.journal.then([this, id = actor.id, due, due_us](const Status&, Now when) {
    if (when.steady_us >= due_us) return due(when);
    if (Actor* actor = directory_.find(id)) actor->delay_timer = env_.timers.at(due_us, due);
  });
}

void ActorManager::alive(Actor& actor, NodeState& node, const proto::WorkerAddress& address,
                         int pid, Now now) {
  *actor.info.mutable_address() = address;
  actor.info.mutable_address()->set_node_id(node.id.binary());
  actor.info.set_pid(pid);
  actor.failed_starts = 0;
  // The actor was alive all the time: its node has registered again after a lost connection, so
  // this is no new start.
  if (actor.phase == Phase::kAlive) return;
  actor.alive_since_us = now.steady_us;
  move(actor, Phase::kAlive, &node);
  persist(actor);
  publish(actor);
}

void ActorManager::create_answered(const NodeId& node_id, const ActorId& id, int64_t epoch,
                                   const Result<proto::CreateActorReply>& reply, Now now) {
  NodeState* node = env_.cluster.find(node_id);
  if (!node || !node->alive()) return;
  Actor* actor = directory_.find(id);
  bool current =
      actor && actor->node == node_id && actor->info.epoch() == epoch && actor->on_node();
  if (!current) {
    if (reply && reply->ok())
      kill_stray(env_.sink, *node, id, reply->address().worker_id(),
                 "the actor was ended while it started");
    return;
  }
  // The node has reported the start in another message already.
  if (actor->phase == Phase::kAlive) return;
  if (!reply) {
    // A broken connection says nothing about the start: its node comes back with the actor or
    // dies.
    if (reply.error().code != Code::kUnavailable) start_refused(*actor, *node, reply.error(), now);
    return;
  }
  if (reply->ok()) return alive(*actor, *node, reply->address(), reply->pid(), now);
  if (reply->no_resources()) return no_room(*actor, *node, now);
  proto::ExitInfo death = reply->failure();
  if (death.node_id().empty()) death.set_node_id(node_id.binary());
  if (death.ip().empty()) death.set_ip(node->info.ip());
  lost(*actor, std::move(death), now);
}

void ActorManager::no_room(Actor& actor, NodeState& node, Now now) {
  // A kill that is to be sent again was meant for the start that the node has refused.
  actor.pending_kill.reset();
  if (actor.seat.group) {
    // Tasks may be in the way in its bundle, and the node has room elsewhere.
    const int64_t pause_us = env_.options.settings.placement_settle_ms * 1000;
    if (actor.seat.bundle >= 0)
      seats_.refuse(*actor.seat.group, actor.seat.bundle, now.steady_us + pause_us);
  } else {
    env_.cluster.start_refused(node, now);
  }
  // A node that has not come back yet may have a later start.
  if (!settled_ && actor.is_outdated()) {
    move(actor, Phase::kWaiting);
    actor.recovered = true;
    return;
  }
  // The node started nothing, so the epoch stays.
  move(actor, Phase::kQueued);
}

void ActorManager::start_refused(Actor& actor, NodeState& node, const Error& error, Now now) {
  const Settings& settings = env_.options.settings;
  if (++actor.failed_starts < settings.actor_start_attempts) {
    env_.cluster.start_refused(node, now);
    return next_start(actor, backoff_us(actor.failed_starts, settings.actor_restart_backoff_max_ms),
                      now);
  }
  finish(actor,
         exit_info(proto::ExitInfo::UNKNOWN,
                   fmt::format("node {} could not start it ({} attempts): {}", node.info.ip(),
                               actor.failed_starts, error.message)),
         Process::kKill, now);
}

void ActorManager::started(NodeState& node, const ActorId& id, const proto::ActorStarted& report,
                           Now now) {
  Actor* actor = directory_.find(id);
  if (!actor || !is_awaited(*actor, report.epoch(), node.id))
    return kill_stray(env_.sink, node, id, report.address().worker_id(),
                      "the actor has been ended or started elsewhere");
  alive(*actor, node, report.address(), report.pid(), now);
}

void ActorManager::died(NodeState& node, const ActorId& id, const proto::ActorDied& report,
                        Now now) {
  Actor* actor = directory_.find(id);
  if (!actor || !actor->on_node() || actor->node != node.id ||
      actor->info.epoch() != report.epoch())
    return;
  proto::ExitInfo death = report.death();
  // The node refused the start after the connection of the request had broken, so it reports a
  // death.
  if (actor->phase == Phase::kStarting && death.kind() == proto::ExitInfo::UNSCHEDULABLE)
    return no_room(*actor, node, now);
  if (death.node_id().empty()) death.set_node_id(node.id.binary());
  if (death.ip().empty()) death.set_ip(node.info.ip());
  if (death.pid() == 0) death.set_pid(actor->info.pid());
  lost(*actor, std::move(death), now);
}

void ActorManager::lost(Actor& actor, proto::ExitInfo death, Now now) {
  if (actor.ending) {
    proto::ExitInfo why = *actor.ending;
    why.set_pid(death.pid());
    why.set_ip(death.ip());
    why.set_node_id(death.node_id());
    return finish(actor, std::move(why), Process::kGone, now);
  }
  int64_t limit = actor.info.spec().max_restarts();
  bool restart = !ends_for_good(death) && (limit < 0 || actor.info.num_restarts() < limit);
  if (!restart) {
    if (limit > 0 && !ends_for_good(death)) {
      std::string text = death.message();
      death.set_message(fmt::format("{}{}it was restarted {} times before (max_restarts={})", text,
                                    text.empty() ? "" : "; ", actor.info.num_restarts(), limit));
    }
    return finish(actor, std::move(death), Process::kGone, now);
  }
  if (WorkerId::is_valid(actor.info.address().worker_id()))
    dead_owners_.push_back(WorkerId::from_binary(actor.info.address().worker_id()));
  const int64_t lived_us = actor.phase == Phase::kAlive ? now.steady_us - actor.alive_since_us : 0;
  const auto healed = static_cast<int>(std::min(lived_us, kHealthyLifeUs) / kHealingUs);
  actor.short_lives = lived_us >= kHealthyLifeUs ? 0 : std::max(1, actor.short_lives + 1 - healed);
  // The first short life is forgiven: programs kill their actors on purpose.
  int64_t delay_us =
      actor.short_lives <= 1
          ? 0
          : backoff_us(actor.short_lives, env_.options.settings.actor_restart_backoff_max_ms);
  actor.info.set_num_restarts(actor.info.num_restarts() + 1);
  log_end(env_.sink, actor, death, "is restarted");
  *actor.info.mutable_death() = std::move(death);
  next_start(actor, delay_us, now);
}

void ActorManager::finish(Actor& actor, proto::ExitInfo death, Process process, Now now) {
  if (actor.dead()) return;
  if (WorkerId::is_valid(actor.info.address().worker_id()))
    dead_owners_.push_back(WorkerId::from_binary(actor.info.address().worker_id()));
  death.set_for_good(true);
  if (process == Process::kKill && actor.on_node()) send_kill(actor, death, false);
  env_.timers.cancel(actor.delay_timer);
  if (death.pid() == 0) death.set_pid(actor.info.pid());
  if (death.worker_id().empty()) death.set_worker_id(actor.info.address().worker_id());
  log_end(env_.sink, actor, death, "is dead");
  *actor.info.mutable_death() = std::move(death);
  actor.info.set_end_time_ms(now.wall_us / 1000);
  move(actor, Phase::kDead);
  persist(actor);
  publish(actor);
  ended_now_.actors.push_back(actor.id);
  if (!env_.jobs.running(actor.job) && directory_.of_job(actor.job).empty())
    ended_now_.jobs.insert(actor.job);
}

// Makes the start of a node that comes back the actor's current one. It is later than the start
// that this head has read from its disk.
void ActorManager::adopt_later_start(Actor& actor, const proto::ActorInfo& later,
                                     const NodeState& node) {
  if (actor.on_node() && actor.node != node.id)
    kill_stray(env_.sink, *env_.cluster.find(actor.node), actor.id,
               actor.info.address().worker_id(), "the actor has been started again elsewhere");
  if (actor.phase != Phase::kWaiting) move(actor, Phase::kWaiting);
  actor.recovered = true;
  actor.info.set_epoch(later.epoch());
  actor.info.set_num_restarts(std::max(actor.info.num_restarts(), later.num_restarts()));
}

Actor* ActorManager::take_back(NodeState& node, const proto::ActorInfo& info, Now now) {
  if (!ActorId::is_valid(info.spec().actor_id())) return nullptr;
  const ActorId id = ActorId::from_binary(info.spec().actor_id());
  Actor* actor = directory_.find(id);
  if (actor && !actor->dead() && actor->is_outdated() && actor->info.epoch() < info.epoch() &&
      bundle_is_here(*actor, env_.groups, node.id))
    adopt_later_start(*actor, info, node);
  const bool here = actor && is_awaited(*actor, info.epoch(), node.id) &&
                    bundle_is_here(*actor, env_.groups, node.id);
  if (!here) {
    kill_stray(env_.sink, node, id, info.address().worker_id(),
               "the actor has been ended or started elsewhere");
    return nullptr;
  }
  if (actor->seat.group && actor->seat.bundle < 0 && info.bundle_index() >= 0 &&
      env_.groups.find(*actor->seat.group)->node_of(info.bundle_index()) == node.id) {
    actor->seat.bundle = info.bundle_index();
    if (actor->on_node())
      seats_.take(*actor->seat.group, actor->seat.bundle, actor->id,
                  actor->phase == Phase::kAlive ? actor->held : actor->placement);
  }
  if (info.state() == proto::ACTOR_ALIVE) {
    alive(*actor, node, info.address(), info.pid(), now);
  } else if (actor->phase == Phase::kWaiting) {
    if (!actor->seat.group) env_.cluster.reserve(node, id, actor->placement);
    // Its constructor is still running; ReportActorStarted follows.
    move(*actor, Phase::kStarting, &node);
  }
  if (actor->pending_kill) env_.sink.kill_worker(node.link(), *actor->pending_kill);
  return actor;
}

void ActorManager::ended_there(const NodeState& node, Actor& actor, const proto::ExitInfo& death,
                               Now now) {
  const std::string& worker = actor.info.address().worker_id();
  if (actor.node == node.id && !worker.empty() && worker == death.worker_id()) {
    lost(actor, death, now);
  } else if (actor.is_outdated() && ends_for_good(death)) {
    finish(actor, death, Process::kKill, now);
  }
}

void ActorManager::node_registered(NodeState& node, const OfNode& of_node, Now now) {
  std::set<ActorId> listed;
  for (const auto& info : of_node.live) {
    if (const Actor* actor = take_back(node, info, now)) listed.insert(actor->id);
  }
  for (const auto& ended : of_node.ended) {
    Actor* actor = actor_with(directory_, ended.actor_id());
    if (actor && !actor->dead() && !listed.contains(actor->id))
      ended_there(node, *actor, ended.death(), now);
  }
  for (Actor* actor : directory_.on_node(node.id)) {
    if (listed.contains(actor->id)) continue;
    if (actor->phase == Phase::kStarting) {
      // The request may have been lost with the connection. A node that did get it knows the epoch
      // and does nothing twice.
      send_create(*actor, node);
      if (actor->pending_kill) env_.sink.kill_worker(node.link(), *actor->pending_kill);
    } else {
      proto::ExitInfo death =
          exit_info(proto::ExitInfo::UNKNOWN,
                    "its process ended while its node was disconnected from the head");
      death.set_node_id(node.id.binary());
      death.set_ip(node.info.ip());
      lost(*actor, std::move(death), now);
    }
  }
  placement_wanted_ = true;
}

void ActorManager::node_lost(NodeState& node, Now now) {
  for (Actor* actor : directory_.on_node(node.id)) {
    if (actor->phase == Phase::kStarting) {
      // The actor was never alive, so this does not count as a restart.
      next_start(*actor, 0, now);
      continue;
    }
    proto::ExitInfo death = exit_info(proto::ExitInfo::NODE_DIED, node.info.death_message());
    death.set_node_id(node.id.binary());
    death.set_ip(node.info.ip());
    lost(*actor, std::move(death), now);
  }
  for (Actor* actor : directory_.owned_on(node.id)) {
    finish(
        *actor,
        exit_info(proto::ExitInfo::OWNER_DIED,
                  fmt::format("the node ({}) of the process that created it died", node.info.ip())),
        Process::kKill, now);
  }
  placement_wanted_ = true;
}

}  // namespace rt::head
