#include "daemons/head/core/actors.h"

#include <fmt/core.h>

#include <utility>

namespace rt::head {
namespace {

using Phase = Actor::Phase;

bool legal(Phase from, Phase to) {
  switch (from) {
    case Phase::kCommitting:
      return to == Phase::kQueued || to == Phase::kDead || to == Phase::kWaiting ||
             to == Phase::kUnready;
    case Phase::kUnready: return to == Phase::kWaiting || to == Phase::kDead;
    case Phase::kWaiting:
      return to == Phase::kQueued || to == Phase::kStarting || to == Phase::kAlive ||
             to == Phase::kDead;
    // kWaiting follows when a node brings a later start of the actor.
    case Phase::kQueued:
      return to == Phase::kStarting || to == Phase::kWaiting || to == Phase::kDead;
    case Phase::kStarting:
      return to == Phase::kAlive || to == Phase::kWaiting || to == Phase::kQueued ||
             to == Phase::kDead;
    case Phase::kAlive: return to == Phase::kWaiting || to == Phase::kDead;
    case Phase::kDead: return false;
  }
  return false;
}

template <class Map, class Key, class Value>
void set_index(Map& map, const Key& key, const Value& value, bool add) {
  if (add) {
    map[key].insert(value);
    return;
  }
  auto it = map.find(key);
  if (it == map.end()) return;
  it->second.erase(value);
  if (it->second.empty()) map.erase(it);
}

Shape shape_of(const Actor& actor) {
  const proto::TaskTemplate& creation = actor.info.spec().creation();
  if (actor.seat.group) return {actor.placement, {}, "", actor.seat.group, actor.wanted_bundle()};
  return {actor.placement, creation.strategy(),
          creation.has_constraint() ? creation.constraint().SerializeAsString() : ""};
}

template <class Map, class Key>
std::vector<ActorId> ids_in(const Map& map, const Key& key) {
  auto it = map.find(key);
  if (it == map.end()) return {};
  return {it->second.begin(), it->second.end()};
}

}  // namespace

std::string Actor::label() const {
  if (info.spec().name().empty()) return info.spec().class_name();
  return fmt::format("'{}' ({})", info.spec().name(), info.spec().class_name());
}

const ResourceSet& Actor::claim() const {
  static const ResourceSet kNothing;
  if (seat.group) return kNothing;
  return phase == Phase::kAlive ? held : placement;
}

const ResourceSet& Actor::load() const {
  static const ResourceSet kNothing;
  return seat.group ? kNothing : placement;
}

Actor* ActorDirectory::find(const ActorId& id) {
  auto it = actors_.find(id);
  return it == actors_.end() ? nullptr : &it->second;
}

const Actor* ActorDirectory::find(const ActorId& id) const {
  auto it = actors_.find(id);
  return it == actors_.end() ? nullptr : &it->second;
}

const Actor* ActorDirectory::find_named(const std::string& ray_namespace,
                                        const std::string& name) const {
  auto it = names_.find({ray_namespace, name});
  return it == names_.end() ? nullptr : find(it->second);
}

Actor* ActorDirectory::find_named(const std::string& ray_namespace, const std::string& name) {
  auto it = names_.find({ray_namespace, name});
  return it == names_.end() ? nullptr : find(it->second);
}

Actor& ActorDirectory::add(proto::ActorInfo info) {
  ActorId id = ActorId::from_binary(info.spec().actor_id());
  auto [it, added] = actors_.try_emplace(id);
  RT_CHECK(added);
  Actor& actor = it->second;
  actor.id = id;
  actor.job = JobId::from_binary(info.spec().job_id());
  actor.placement = ResourceSet::from_proto(info.spec().placement());
  actor.held = ResourceSet::from_proto(info.spec().creation().resources());
  // Peers promise placement >= creation.resources, but accounting must not depend on that.
  for (const auto& [name, units] : actor.held.all()) {
    if (actor.placement.units(name) < units) actor.placement.set_units(name, units);
  }
  if (GroupId::is_valid(info.spec().creation().group_id()))
    actor.seat.group = GroupId::from_binary(info.spec().creation().group_id());
  actor.info = std::move(info);
  if (!actor.info.spec().name().empty()) {
    bool free =
        names_.try_emplace({actor.info.spec().ray_namespace(), actor.info.spec().name()}, id)
            .second;
    RT_CHECK(free);
  }
  index(actor, true);
  return actor;
}

void ActorDirectory::index(Actor& actor, bool add) {
  set_index(by_job_, actor.job, actor.id, add);
  if (actor.seat.group) set_index(by_group_, *actor.seat.group, actor.id, add);
  if (!add || actor.ends_with_owner()) index_owner(actor, add);
}

void ActorDirectory::index_owner(Actor& actor, bool add) {
  const proto::WorkerAddress& owner = actor.info.spec().owner();
  if (!WorkerId::is_valid(owner.worker_id())) return;
  set_index(by_owner_, WorkerId::from_binary(owner.worker_id()), actor.id, add);
  if (NodeId::is_valid(owner.node_id()))
    set_index(by_owner_node_, NodeId::from_binary(owner.node_id()), actor.id, add);
}

void ActorDirectory::give_up_name(Actor& actor) {
  if (actor.info.spec().name().empty() || std::exchange(actor.gave_up_name, true)) return;
  names_.erase({actor.info.spec().ray_namespace(), actor.info.spec().name()});
}

void ActorDirectory::remove(Actor& actor) {
  RT_CHECK(actor.phase == Phase::kCommitting);
  index(actor, false);
  give_up_name(actor);
  actors_.erase(actor.id);
}

void ActorDirectory::leave_phase(Actor& actor) {
  if (actor.phase == Phase::kQueued) {
    auto it = queues_.find(shape_of(actor));
    it->second.actors.erase(actor.queue_seq);
    if (it->second.actors.empty()) queues_.erase(it);
  }
  if (actor.on_node()) set_index(by_node_, actor.node, actor.id, false);
  if (actor.phase == Phase::kUnready) --unready_;
  if (actor.phase == Phase::kUnready && actor.detached()) index_owner(actor, false);
}

void ActorDirectory::enter_phase(Actor& actor) {
  switch (actor.phase) {
    case Phase::kQueued:
      // An actor that a node refused keeps its place in the queue.
      if (!actor.queue_seq) actor.queue_seq = ++last_seq_;
      queues_[shape_of(actor)].actors.emplace(actor.queue_seq, &actor);
      break;
    case Phase::kUnready: ++unready_; break;
    case Phase::kStarting: set_index(by_node_, actor.node, actor.id, true); break;
    case Phase::kAlive:
      actor.queue_seq = 0;
      actor.recovered = false;
      set_index(by_node_, actor.node, actor.id, true);
      break;
    case Phase::kDead:
      index(actor, false);
      give_up_name(actor);
      dead_order_.push_back(actor.id);
      actor.info = summary_of(actor.info);
      actor.pending_kill.reset();
      break;
    default: break;
  }
}

void ActorDirectory::move(Actor& actor, Phase to, const NodeId& node) {
  RT_CHECK(legal(actor.phase, to));
  leave_phase(actor);
  bool was_alive =
      actor.info.state() == proto::ACTOR_ALIVE || actor.info.state() == proto::ACTOR_RESTARTING;
  actor.phase = to;
  bool placed = to == Phase::kStarting || to == Phase::kAlive;
  RT_CHECK(placed == !node.is_nil());
  actor.node = node;
  if (to == Phase::kAlive) {
    actor.info.set_state(proto::ACTOR_ALIVE);
  } else if (to == Phase::kDead) {
    actor.info.set_state(proto::ACTOR_DEAD);
  } else if (to == Phase::kUnready) {
    actor.info.set_state(proto::ACTOR_DEPENDENCIES_UNREADY);
  } else {
    actor.info.set_state(was_alive || actor.info.num_restarts() > 0 ? proto::ACTOR_RESTARTING
                                                                    : proto::ACTOR_PENDING);
  }
  enter_phase(actor);
}

void ActorDirectory::recover_dead(proto::ActorInfo info) {
  ActorId id = ActorId::from_binary(info.spec().actor_id());
  auto [it, added] = actors_.try_emplace(id);
  RT_CHECK(added);
  it->second.id = id;
  it->second.job = JobId::from_binary(info.spec().job_id());
  it->second.info = std::move(info);
  it->second.phase = Phase::kDead;
  it->second.gave_up_name = true;
  dead_order_.push_back(id);
}

std::vector<ActorId> ActorDirectory::forget_dead(size_t limit) {
  std::vector<ActorId> forgotten;
  while (dead_order_.size() > limit) {
    forgotten.push_back(dead_order_.front());
    actors_.erase(dead_order_.front());
    dead_order_.pop_front();
  }
  return forgotten;
}

std::vector<Actor*> ActorDirectory::of_job(const JobId& job) {
  std::vector<Actor*> out;
  for (const ActorId& id : ids_in(by_job_, job)) out.push_back(find(id));
  return out;
}

std::vector<Actor*> ActorDirectory::in_group(const GroupId& group) {
  std::vector<Actor*> out;
  for (const ActorId& id : ids_in(by_group_, group)) out.push_back(find(id));
  return out;
}

std::vector<Actor*> ActorDirectory::on_node(const NodeId& node) {
  std::vector<Actor*> out;
  for (const ActorId& id : ids_in(by_node_, node)) out.push_back(find(id));
  return out;
}

std::vector<Actor*> ActorDirectory::owned_by(const WorkerId& worker) {
  std::vector<Actor*> out;
  for (const ActorId& id : ids_in(by_owner_, worker)) out.push_back(find(id));
  return out;
}

std::vector<Actor*> ActorDirectory::owned_on(const NodeId& node) {
  std::vector<Actor*> out;
  for (const ActorId& id : ids_in(by_owner_node_, node)) out.push_back(find(id));
  return out;
}

proto::ActorInfo ActorDirectory::summary_of(const proto::ActorInfo& info) {
  proto::ActorInfo out = info;
  proto::ActorSpec& spec = *out.mutable_spec();
  spec.clear_args();
  spec.clear_handle_blob();
  spec.mutable_creation()->mutable_function()->clear_blob();
  spec.clear_job_config();
  return out;
}

void ActorDirectory::check_invariants() const {
  size_t named = 0, dead = 0, queued = 0, placed = 0;
  for (const auto& [id, actor] : actors_) {
    RT_CHECK(actor.id == id);
    dead += actor.dead();
    queued += actor.phase == Phase::kQueued;
    placed += actor.on_node();
    RT_CHECK(actor.on_node() == !actor.node.is_nil());
    RT_CHECK((actor.phase == Phase::kAlive) == (actor.info.state() == proto::ACTOR_ALIVE));
    if (actor.phase != Phase::kCommitting)
      RT_CHECK((actor.phase == Phase::kUnready) ==
               (actor.info.state() == proto::ACTOR_DEPENDENCIES_UNREADY));
    RT_CHECK(actor.dead() == (actor.info.state() == proto::ACTOR_DEAD));
    if (actor.on_node()) RT_CHECK(by_node_.at(actor.node).contains(id));
    if (!actor.dead()) RT_CHECK(by_job_.at(actor.job).contains(id));
    RT_CHECK(actor.gave_up_name || !actor.dead() || actor.info.spec().name().empty());
    if (!actor.gave_up_name && !actor.info.spec().name().empty()) {
      ++named;
      RT_CHECK(names_.at({actor.info.spec().ray_namespace(), actor.info.spec().name()}) == id);
    }
  }
  RT_CHECK(named == names_.size());
  RT_CHECK(dead == dead_order_.size());
  for (const auto& [shape, queue] : queues_) {
    RT_CHECK(!queue.actors.empty());
    for (const auto& [seq, actor] : queue.actors)
      RT_CHECK(actor->phase == Phase::kQueued && actor->queue_seq == seq);
    queued -= queue.actors.size();
  }
  RT_CHECK(queued == 0);
  for (const auto& [node, ids] : by_node_) placed -= ids.size();
  RT_CHECK(placed == 0);
}

}  // namespace rt::head
