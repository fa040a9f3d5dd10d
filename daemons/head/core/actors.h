// The actor directory: records, names and indexes. It decides nothing (see actor_manager.h);
// move() is the only way to change a phase.
//
//   phase        state shown          meaning
//   kCommitting                       its registration is not on disk yet; nobody may see it
//   kUnready     DEPENDENCIES_UNREADY its owner has yet to deliver the constructor's arguments
//   kWaiting     PENDING, RESTARTING  its next start is not due: its epoch or its arguments are
//                                     not on disk yet, it is in back-off, or its node may still
//                                     come back
//   kQueued      PENDING, RESTARTING  it waits for a node with room
//   kStarting    PENDING, RESTARTING  a node was told to create it
//   kAlive       ALIVE
//   kDead        DEAD                 the last dead_actors_kept are kept, without arguments
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/resources/resource_set.h"
#include "daemons/head/core/timers.h"
#include "daemons/head/core/types.h"

namespace rt::head {

struct Actor {
  enum class Phase { kCommitting, kUnready, kWaiting, kQueued, kStarting, kAlive, kDead };

  ActorId id;
  JobId job;
  proto::ActorInfo info;  // The durable record.
  ResourceSet placement, held;
  Phase phase = Phase::kCommitting;
  // Set in phases kStarting and kAlive, else nil.
  NodeId node;
  // The placement group in which it runs, and the bundle that it has there on a node; -1: none, or
  // not known since the head restarted.
  struct Seat {
    std::optional<GroupId> group;
    int bundle = -1;
  };
  Seat seat;
  // Its next start has at least this epoch: the disk may not know of all starts that an earlier
  // head made.
  int64_t least_epoch = 0;
  // Set in kWaiting after a restart of the head: its node may still bring it back.
  bool recovered = false;
  // Set once the actor was told to end gracefully: the cause of death to record when it has ended.
  std::optional<proto::ExitInfo> ending;
  // A kill that was sent and whose effect has not been seen; sent again when the node reconnects.
  std::optional<proto::KillWorkerRequest> pending_kill;
  // The name is free for another actor: this one is dead or about to end.
  bool gave_up_name = false;
  // Counts starts in a row that nodes refused with an error.
  int failed_starts = 0;
  // Counts the doublings of the pause before the next start: lives in a row that were too short to
  // be healthy, less what longer ones among them took back.
  int short_lives = 0;
  int64_t alive_since_us = 0, queued_since_us = 0;
  uint64_t queue_seq = 0;
  Timers::Id delay_timer = 0;
  // Replies to the registration and to others that asked for the actor's name or id before it was
  // on disk.
  std::vector<std::function<void(const Status&)>> on_committed;

  bool dead() const { return phase == Phase::kDead; }
  bool on_node() const { return phase == Phase::kStarting || phase == Phase::kAlive; }
  // Whether this head has not started the actor itself: it knows the actor from its disk, which may
  // lack later changes.
  bool is_outdated() const { return info.epoch() < least_epoch; }
  bool detached() const { return info.spec().detached(); }
  // Whether the actor ends with the process that created it. Even a detached actor does until it
  // has its arguments, because only that process can deliver them.
  bool ends_with_owner() const {
    return !detached() || info.state() == proto::ACTOR_DEPENDENCIES_UNREADY;
  }
  // The actor's claim on its node: while it starts, the amounts for its placement, and later those
  // that it holds. An actor in a bundle claims nothing beyond the bundle.
  const ResourceSet& claim() const;
  // The amounts that count as load of its node.
  const ResourceSet& load() const;
  int wanted_bundle() const { return info.spec().creation().bundle_index(); }
  bool outlives_job() const { return detached() || info.spec().job_config().outlives_job(); }
  // Names the actor in messages: Counter, or 'name' (Counter).
  std::string label() const;
};

// Queued actors of one shape differ in nothing that placement looks at, so they are placed oldest
// first.
struct Shape {
  ResourceSet placement;
  // `constraint` is serialised; "" allows any node.
  proto::SchedulingStrategy strategy = proto::DEFAULT;
  std::string constraint;
  std::optional<GroupId> group;
  int bundle = -1;  // With a group: the bundle that it asks for.
  friend auto operator<=>(const Shape&, const Shape&) = default;
};
struct ShapeQueue {
  std::map<uint64_t, Actor*> actors;  // By queue_seq.
  // Jobs whose drivers were told that the shape is infeasible.
  std::set<JobId> warned;
};

class ActorDirectory {
 public:
  using Name = std::pair<std::string, std::string>;  // namespace, name

  Actor* find(const ActorId& id);
  const Actor* find(const ActorId& id) const;
  Actor* find_named(const std::string& ray_namespace, const std::string& name);
  const Actor* find_named(const std::string& ray_namespace, const std::string& name) const;
  // Frees the actor's name for another actor.
  void give_up_name(Actor& actor);
  const std::unordered_map<ActorId, Actor>& all() const { return actors_; }

  // Adds an actor in phase kCommitting and reserves its name. The id must be new and the name
  // free. The state of `info` says whether the arguments are there.
  Actor& add(proto::ActorInfo info);
  // Removes an actor whose registration did not reach the disk.
  void remove(Actor& actor);
  // Checks the transition and keeps state, queue, name and indexes right. `node` is given for
  // kStarting and kAlive only.
  void move(Actor& actor, Actor::Phase to, const NodeId& node = NodeId::nil());
  // Adds the record of a dead actor. Call it for the oldest first.
  void recover_dead(proto::ActorInfo info);
  // Forgets the oldest dead actors beyond `limit` and returns their ids.
  std::vector<ActorId> forget_dead(size_t limit);

  // Whether an actor of the job, or one of such a description, is not dead.
  bool any_of_job(const JobId& job) const { return by_job_.contains(job); }
  template <class Fits>
  bool any_living(Fits fits) const {
    return std::any_of(actors_.begin(), actors_.end(), [&](const auto& entry) {
      return !entry.second.dead() && fits(entry.second.info.spec());
    });
  }
  // The actors of the job or the placement group that are not dead.
  std::vector<Actor*> of_job(const JobId& job);
  std::vector<Actor*> in_group(const GroupId& group);
  std::vector<Actor*> on_node(const NodeId& node);
  // The living actors that end with this process (Actor::ends_with_owner).
  std::vector<Actor*> owned_by(const WorkerId& worker);
  // The same for all owners on this node.
  std::vector<Actor*> owned_on(const NodeId& node);
  std::map<Shape, ShapeQueue>& queues() { return queues_; }
  const std::map<Shape, ShapeQueue>& queues() const { return queues_; }

  // The number of actors in kUnready.
  int64_t unready() const { return unready_; }

  // Returns the record without arguments, code and method tables, for subscribers and lists.
  static proto::ActorInfo summary_of(const proto::ActorInfo& info);
  void check_invariants() const;

 private:
  void leave_phase(Actor& actor);
  void enter_phase(Actor& actor);
  void index(Actor& actor, bool add);
  void index_owner(Actor& actor, bool add);

  std::unordered_map<ActorId, Actor> actors_;
  std::map<Name, ActorId> names_;
  std::map<JobId, std::set<ActorId>> by_job_;
  std::map<GroupId, std::set<ActorId>> by_group_;
  std::map<NodeId, std::set<ActorId>> by_node_;
  std::map<WorkerId, std::set<ActorId>> by_owner_;
  std::map<NodeId, std::set<ActorId>> by_owner_node_;
  std::map<Shape, ShapeQueue> queues_;
  std::deque<ActorId> dead_order_;
  uint64_t last_seq_ = 0;
  int64_t unready_ = 0;
};

}  // namespace rt::head
