// Finds nodes for queued actors. See actor_manager.h.
#include <fmt/core.h>

#include <algorithm>

#include "daemons/head/core/actor_manager.h"
#include "daemons/head/core/policy/policy.h"

namespace rt::head {

// Prefers nodes with room for the actor at this moment. An actor that has waited for
// lease_revoke_after_ms may also go to a node where only tasks are in the way: there it queues at
// the node-manager, which takes leases back for it.
NodeState* ActorManager::choose(const Actor& actor, const std::optional<AllowedNodes>& allowed,
                                Now now) {
  const Settings& settings = env_.options.settings;
  bool patient = now.steady_us - actor.queued_since_us >= settings.lease_revoke_after_ms * 1000;
  std::vector<const NodeState*> fitting, only_tasks_in_the_way, preferred;
  int index = -1;
  for (const auto& [id, node] : env_.cluster.nodes()) {
    if (!node.alive()) continue;
    ++index;
    auto place = allowed ? std::find(allowed->nodes.begin(), allowed->nodes.end(), index) -
                               allowed->nodes.begin()
                         : 0;
    if (allowed && place == static_cast<std::ptrdiff_t>(allowed->nodes.size())) continue;
    if (!node.takes_work() ||
        (node.last_start_refused_at_us &&
         now.steady_us - node.last_start_refused_at_us < settings.placement_settle_ms * 1000))
      continue;
    if (!Cluster::free_of_actors(node).contains(actor.placement)) continue;
    if (Cluster::free_now(node).contains(actor.placement)) {
      fitting.push_back(&node);
      if (allowed && place < static_cast<std::ptrdiff_t>(allowed->preferred))
        preferred.push_back(&node);
    } else if (patient) {
      only_tasks_in_the_way.push_back(&node);
    }
  }
  if (!preferred.empty()) fitting.swap(preferred);
  if (fitting.empty()) fitting.swap(only_tasks_in_the_way);
  if (fitting.empty()) return nullptr;
  PlacementRequest request{actor.placement,
                           NodeId::from_binary(actor.info.spec().owner().node_id()),
                           settings.scheduler_spread_threshold};
  PlacementPolicy policy = *policy_of(actor.info.spec().creation().scheduling_strategy());
  return env_.cluster.find(policy(fitting, request)->id);
}

std::optional<AllowedNodes> ActorManager::allowed(const Actor& actor) const {
  const proto::TaskTemplate& creation = actor.info.spec().creation();
  if (!creation.has_constraint() || !constrains(creation.constraint())) return std::nullopt;
  std::vector<NodeFacts> live;
  for (const auto& [id, node] : env_.cluster.nodes()) {
    if (node.alive()) live.push_back({id.view(), &node.info.labels(), &node.total});
  }
  return allowed_nodes(creation.constraint(), actor.placement, live);
}

std::string ActorManager::unschedulable(const Actor& actor,
                                        const std::optional<AllowedNodes>& allowed) const {
  using Verdict = AllowedNodes::Verdict;
  if (!allowed || env_.cluster.awaiting_nodes()) return "";
  const proto::NodeConstraint& constraint = actor.info.spec().creation().constraint();
  std::string node =
      "the node " + to_hex(constraint.node_id()) + " specified via NodeAffinitySchedulingStrategy ";
  if (allowed->verdict == Verdict::kGone)
    return node + "doesn't exist any more or is not known, and soft=False was given";
  if (allowed->verdict == Verdict::kTooSmall)
    return node + "doesn't have " + actor.placement.to_string() + ", and soft=False was given";
  if (constraint.fail_on_unavailable())
    return node + "has no room for " + actor.placement.to_string() +
           " now, and _fail_on_unavailable was given";
  return "";
}

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
      std::optional<AllowedNodes> constrained = allowed(oldest);
      NodeState* node = choose(oldest, constrained, now);
      if (node) {
        start(oldest, *node);
        continue;
      }
      if (std::string why = unschedulable(oldest, constrained); !why.empty()) {
        finish(oldest, exit_info(proto::ExitInfo::UNSCHEDULABLE, std::move(why)), Process::kGone,
               now);
        continue;
      }
      if (constrained ? constrained->nodes.empty() : env_.cluster.infeasible(it->first.placement)) {
        int64_t warn_at_us =
            oldest.queued_since_us + env_.options.settings.infeasible_warning_after_ms * 1000;
        if (now.steady_us >= warn_at_us) {
          warn_infeasible(it->first, it->second, now);
        } else {
          look_again = true;
        }
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
  env_.cluster.reserve(node, actor.id, actor.placement);
  move(actor, Phase::kStarting, &node);
  send_create(actor, node);
}

void ActorManager::send_create(const Actor& actor, const NodeState& node) {
  proto::CreateActorRequest request;
  *request.mutable_spec() = actor.info.spec();
  request.set_epoch(actor.info.epoch());
  request.set_num_restarts(actor.info.num_restarts());
  env_.sink.create_actor(node.link(), request);
}

void ActorManager::warn_infeasible(const Shape& shape, ShapeQueue& queue, Now) {
  for (const auto& [seq, actor] : queue.actors) {
    if (!queue.warned.insert(actor->job).second) continue;
    const proto::TaskTemplate& creation = actor->info.spec().creation();
    std::string where = creation.has_constraint() ? " on " + describe(creation.constraint()) : "";
    env_.subscriptions.publish_notice(
        actor->job, "warning",
        fmt::format("The actor {} needs {}{}, which no node of the cluster has. It stays pending "
                    "until a node with these resources joins; "
                    "see `rayctl status`, or ask for less.",
                    actor->label(), shape.placement.to_string(), where));
  }
}

void ActorManager::account(Actor& actor, NodeState& node, int sign) {
  const ResourceSet& held = actor.phase == Phase::kAlive ? actor.held : actor.placement;
  if (sign > 0) {
    node.actors_hold.add(held);
    node.actors_placed.add(actor.placement);
  } else {
    node.actors_hold.subtract(held);
    node.actors_placed.subtract(actor.placement);
  }
  node.actors += sign;
}

void ActorManager::move(Actor& actor, Phase to, NodeState* node) {
  if (actor.on_node()) {
    NodeState& before = *env_.cluster.find(actor.node);
    account(actor, before, -1);
    if (to == Phase::kAlive) {
      env_.cluster.confirm_reservation(before, actor.id, actor.held);
    } else {
      env_.cluster.cancel_reservation(before, actor.id);
    }
    // The actor holds less on its old node from here on, or nothing.
    placement_wanted_ = true;
  }
  directory_.move(actor, to, node ? node->id : NodeId::nil());
  if (node) account(actor, *node, +1);
}

void ActorManager::add_waiting(std::vector<proto::Demand>* demands, int64_t* for_arguments) const {
  *for_arguments += directory_.unready();
  for (const auto& [shape, queue] : directory_.queues()) {
    proto::Demand demand;
    shape.placement.to_proto(demand.mutable_resources());
    demand.set_count(static_cast<int64_t>(queue.actors.size()));
    const Actor& oldest = *queue.actors.begin()->second;
    demand.set_what(oldest.info.spec().class_name());
    if (auto allowed_here = allowed(oldest)) {
      demand.set_where(where_of(&oldest.info.spec().creation().constraint()));
      demand.set_infeasible(allowed_here->nodes.empty());
    }
    demands->push_back(std::move(demand));
  }
}

}  // namespace rt::head
