#include "daemons/head/core/actor_placement.h"

#include <fmt/core.h>

#include <utility>

#include "common/scheduling/policy.h"
#include "daemons/head/core/exit_info.h"

namespace rt::head {

using scheduling::AllowedNodes, scheduling::Amount, scheduling::kNoNode, scheduling::NodeMask,
    scheduling::NodeSlot;

namespace {

AllowedNodes allowed_for(const Actor& actor, const Cluster& cluster) {
  return scheduling::allowed_nodes(actor.info.spec().creation().constraint(), actor.placement,
                                   cluster.candidates());
}

// Names the thing that an actor in a group waits for: the words follow "waiting for".
std::string waits_in_group(const Actor& actor, const GroupDirectory& groups) {
  const Group* group = groups.find(*actor.seat.group);
  const std::string name = "placement group " + (group ? group->label() : actor.seat.group->hex());
  const int bundle = actor.wanted_bundle();
  if (!group) return name + ", which is not known yet";
  if (bundle >= 0)
    return fmt::format("{} bundle {} of {}",
                       group->node_of(bundle).is_nil() ? "a node for" : "room in", bundle, name);
  return (group->phase == Group::Phase::kCreated ? "room in a bundle of " : "the nodes of ") + name;
}

// For an actor that no node can take at the moment, returns why it must fail, or "" if it may wait.
std::string unschedulable(const Actor& actor, const AllowedNodes& allowed, const Cluster& cluster) {
  using Verdict = AllowedNodes::Verdict;
  if (cluster.awaiting_nodes()) return "";
  const proto::NodeConstraint& constraint = actor.info.spec().creation().constraint();
  std::string node =
      "the node " + to_hex(constraint.node_id()) + " specified via NodeAffinitySchedulingStrategy ";
  if (allowed.verdict == Verdict::kGone)
    return node + "doesn't exist any more or is not known, and soft=False was given";
  if (allowed.verdict == Verdict::kTooSmall)
    return node + "doesn't have " + actor.placement.to_string() + ", and soft=False was given";
  if (constraint.fail_on_unavailable())
    return node + "has no room for " + actor.placement.to_string() +
           " now, and _fail_on_unavailable was given";
  return "";
}

}  // namespace

// Prefers nodes with room for the actor at this moment. An actor that has waited for
// lease_revoke_after_ms may also go to a node where only tasks are in the way: there it queues at
// the node-manager, which takes leases back for it.
NodeState* ActorPlacement::choose(const Actor& actor, const AllowedNodes& allowed, Now now) {
  const Settings& settings = env_.options.settings;
  const scheduling::Nodes& nodes = env_.cluster.candidates();
  const proto::SchedulingStrategy strategy = actor.info.spec().creation().strategy();
  const std::string& creator = actor.info.spec().owner().node_id();
  const NodeMask beside_actors =
      allowed.nodes & nodes.open() & nodes.having(actor.placement, Amount::kBesideActors);
  NodeMask fitting = beside_actors & nodes.having(actor.placement, Amount::kFree);
  const bool patient =
      now.steady_us - actor.queued_since_us >= settings.lease_revoke_after_ms * 1000;
  if (fitting.empty() && patient) fitting = beside_actors;
  const NodeSlot slot = scheduling::choose(
      nodes,
      {.resources = actor.placement,
       .strategy = strategy,
       .spread_threshold = settings.scheduler_spread_threshold,
       .near = creator.empty() ? kNoNode : nodes.find(NodeId::from_binary(creator)),
       .last = turns_last_},
      std::move(fitting), allowed.preferred);
  if (slot == kNoNode) return nullptr;
  if (scheduling::policy_of(strategy).takes_turns) turns_last_ = slot;
  return env_.cluster.find(nodes.id(slot));
}

ActorPlacement::Verdict ActorPlacement::decide_in_group(const Actor& actor, Now now) const {
  const Group* group = env_.groups.find(*actor.seat.group);
  // A group may be registered by another process, whose request is on its way, or anew after the
  // head has restarted.
  const int64_t patience_us = env_.options.settings.node_timeout_ms * 1000;
  const bool gone = env_.groups.is_gone(*actor.seat.group);
  if (!group && !gone && now.steady_us - actor.queued_since_us < patience_us) return {};
  if (!group || group->removed()) {
    const std::string why = group || gone ? "was removed" : "is not known to this cluster";
    return {.end =
                exit_info(proto::ExitInfo::GROUP_REMOVED,
                          fmt::format("its placement group {} {}", actor.seat.group->hex(), why))};
  }
  const int bundle =
      env_.seats.choose(*group, actor.wanted_bundle(), actor.placement, env_.cluster, now);
  if (bundle < 0) return {};
  return {.node = env_.cluster.find(group->node_of(bundle)), .bundle = bundle};
}

ActorPlacement::Verdict ActorPlacement::decide(const Actor& actor, Now now) {
  if (actor.seat.group) return decide_in_group(actor, now);
  const AllowedNodes allowed = allowed_for(actor, env_.cluster);
  if (NodeState* node = choose(actor, allowed, now)) return {.node = node};
  if (std::string why = unschedulable(actor, allowed, env_.cluster); !why.empty())
    return {.end = exit_info(proto::ExitInfo::UNSCHEDULABLE, std::move(why))};
  return {.infeasible = allowed.nodes.empty()};
}

void ActorPlacement::warn_infeasible(const Shape& shape, ShapeQueue& queue) {
  for (const auto& [seq, actor] : queue.actors) {
    if (!queue.warned.insert(actor->job).second) continue;
    const proto::TaskTemplate& creation = actor->info.spec().creation();
    std::string where =
        creation.has_constraint() ? " on " + scheduling::describe(creation.constraint()) : "";
    env_.subscriptions.publish_notice(
        actor->job, "warning",
        fmt::format("The actor {} needs {}{}, which no node of the cluster has. It stays pending "
                    "until a node with these resources joins; "
                    "see `rayctl status`, or ask for less.",
                    actor->label(), shape.placement.to_string(), where));
  }
}

void ActorPlacement::add_waiting(const ActorDirectory& directory,
                                 std::vector<proto::Demand>* demands,
                                 int64_t* for_arguments) const {
  *for_arguments += directory.unready();
  for (const auto& [shape, queue] : directory.queues()) {
    proto::Demand demand;
    shape.placement.to_proto(demand.mutable_resources());
    demand.set_count(static_cast<int64_t>(queue.actors.size()));
    const Actor& oldest = *queue.actors.begin()->second;
    demand.set_what(oldest.info.spec().class_name());
    const proto::TaskTemplate& creation = oldest.info.spec().creation();
    if (oldest.seat.group) {
      demand.set_group_id(oldest.seat.group->binary());
      demand.set_bundle_index(oldest.wanted_bundle());
      demand.set_waits_for(waits_in_group(oldest, env_.groups));
    } else if (creation.has_constraint() && scheduling::constrains(creation.constraint())) {
      demand.set_where(scheduling::where_of(&creation.constraint()));
      demand.set_infeasible(allowed_for(oldest, env_.cluster).nodes.empty());
    }
    demands->push_back(std::move(demand));
  }
}

}  // namespace rt::head
