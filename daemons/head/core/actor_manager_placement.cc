// Starts queued actors, and accounts for each on its node. See actor_manager.h.
#include <algorithm>

#include "daemons/head/core/actor_manager.h"

namespace rt::head {

void ActorManager::place(Now now) {
  placement_wanted_ = false;
  auto& queues = directory_.queues();
  bool look_again = false;
  for (auto it = queues.begin(); it != queues.end();) {
    auto next = std::next(it);
    // The queue disappears with its last actor, so the loop counts instead of testing for
    // emptiness.
    for (size_t left = it->second.actors.size(); left > 0; --left) {
      Actor& oldest = *it->second.actors.begin()->second;
      ActorPlacement::Verdict verdict = placement_.decide(oldest, now);
      if (verdict.node) {
        oldest.seat.bundle = verdict.bundle;
        start(oldest, *verdict.node);
        continue;
      }
      if (verdict.end) {
        finish(oldest, std::move(*verdict.end), Process::kGone, now);
        continue;
      }
      const int64_t warn_at_us =
          oldest.queued_since_us + env_.options.settings.infeasible_warning_after_ms * 1000;
      if (verdict.infeasible && now.steady_us >= warn_at_us) {
        placement_.warn_infeasible(it->first, it->second);
      } else {
        look_again = true;
      }
      break;
    }
    it = next;
  }
  if (!look_again || place_timer_) return;
  int64_t interval_us = std::max<int64_t>(1, env_.options.settings.placement_settle_ms) * 1000;
  place_timer_ = env_.timers.at(now.steady_us + interval_us, [this](Now) {
    place_timer_ = 0;
    placement_wanted_ = true;
  });
}

void ActorManager::start(Actor& actor, NodeState& node) {
  if (!actor.seat.group) env_.cluster.reserve(node, actor.id, actor.placement);
  move(actor, Phase::kStarting, &node);
  send_create(actor, node);
}

void ActorManager::send_create(const Actor& actor, const NodeState& node) {
  proto::CreateActorRequest request;
  *request.mutable_spec() = actor.info.spec();
  request.set_epoch(actor.info.epoch());
  request.set_num_restarts(actor.info.num_restarts());
  if (actor.seat.group) request.set_bundle_index(actor.seat.bundle);
  env_.sink.create_actor(node.link(), request);
}

void ActorManager::move(Actor& actor, Phase to, NodeState* node) {
  if (actor.on_node()) {
    NodeState& before = *env_.cluster.find(actor.node);
    env_.cluster.remove_actor(before, actor.claim(), actor.load());
    if (actor.seat.group) {
      if (to != Phase::kAlive && actor.seat.bundle >= 0) {
        seats_.leave(*actor.seat.group, actor.seat.bundle, actor.id);
        actor.seat.bundle = -1;
      }
    } else if (to == Phase::kAlive) {
      env_.cluster.confirm_reservation(before, actor.id, actor.held);
    } else {
      env_.cluster.cancel_reservation(before, actor.id);
    }
    // The actor holds less on its old node from here on, or nothing.
    placement_wanted_ = true;
  }
  directory_.move(actor, to, node ? node->id : NodeId::nil());
  if (!node) return;
  env_.cluster.add_actor(*node, actor.claim(), actor.load());
  if (!actor.seat.group) return;
  if (actor.seat.bundle < 0) actor.seat.bundle = actor.wanted_bundle();
  if (actor.seat.bundle >= 0)
    seats_.take(*actor.seat.group, actor.seat.bundle, actor.id,
                to == Phase::kAlive ? actor.held : actor.placement);
}

}  // namespace rt::head
