// The actor directory: records, names and indexes. It decides nothing (see actor_manager.h); move()
// is the one way to change a phase.
//
//   phase        state shown          meaning
//   kCommitting  PENDING              its registration is on the way to the disk; nobody may see it
//   yet kWaiting     PENDING, RESTARTING  its next start is not due: epoch on the way to the disk,
//   back-off, or nodes awaited kQueued      PENDING, RESTARTING  waits for a node with room
//   kStarting    PENDING, RESTARTING  a node was told to create it
//   kAlive       ALIVE
//   kDead        DEAD                 kept for dead_actors_kept, without arguments
#pragma once

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
  enum class Phase { kCommitting, kWaiting, kQueued, kStarting, kAlive, kDead };

  ActorId id;
  JobId job;
  proto::ActorInfo info;  // the durable record
  ResourceSet placement, held;
  Phase phase = Phase::kCommitting;
  NodeId node;             // kStarting, kAlive
  bool recovered = false;  // kWaiting since the head restarted: its node may still bring it back
  std::optional<proto::ExitInfo> ending;  // told to end gracefully: what to say when it has
  std::optional<proto::KillWorkerRequest>
      pending_kill;           // sent, its effect not seen: repeated when the node reconnects
  bool gave_up_name = false;  // dead, or about to be
  int failed_starts = 0;      // in a row, refused by nodes with an error
  int short_lives = 0;        // in a row
  int64_t alive_since_us = 0, queued_since_us = 0;
  uint64_t queue_seq = 0;
  Timers::Id delay_timer = 0;
  std::vector<std::function<void(const Status&)>>
      on_committed;  // others that asked for its name meanwhile

  bool dead() const { return phase == Phase::kDead; }
  bool on_node() const { return phase == Phase::kStarting || phase == Phase::kAlive; }
  bool detached() const { return info.spec().detached(); }
  bool outlives_job() const { return detached() || info.spec().job_config().outlives_job(); }
  std::string label() const;  // for messages: Counter, or 'name' (Counter)
};

// Actors that any node with the same room can take, oldest first.
struct Shape {
  ResourceSet placement;
  std::string strategy, constraint;  // the latter serialised; "": any node
  friend auto operator<=>(const Shape&, const Shape&) = default;
};
struct ShapeQueue {
  std::map<uint64_t, Actor*> actors;  // by queue_seq
  std::set<JobId> warned;             // drivers told that it is infeasible
};

class ActorDirectory {
 public:
  using Name = std::pair<std::string, std::string>;  // namespace, name

  Actor* find(const ActorId& id);
  const Actor* find(const ActorId& id) const;
  Actor* find_named(const std::string& ray_namespace, const std::string& name);
  // Another one may have it from now on.
  void give_up_name(Actor& actor);
  const std::unordered_map<ActorId, Actor>& all() const { return actors_; }

  // kCommitting, name reserved. The id is new and the name free.
  Actor& add(proto::ActorInfo info);
  // The registration did not reach the disk.
  void remove(Actor& actor);
  // Checks the transition; keeps state, queue, name and indexes right. `node` for kStarting and
  // kAlive.
  void move(Actor& actor, Actor::Phase to, const NodeId& node = NodeId::nil());
  // A record of one that is dead; the oldest first.
  void recover_dead(proto::ActorInfo info);
  // Oldest dead ones beyond `limit` are forgotten; returns which.
  std::vector<ActorId> forget_dead(size_t limit);

  std::vector<Actor*> of_job(const JobId& job);  // not dead
  std::vector<Actor*> on_node(const NodeId& node);
  std::vector<Actor*> owned_by(const WorkerId& worker);  // not dead, not detached
  std::vector<Actor*> owned_on(const NodeId& node);      // likewise, owners on that node
  std::map<Shape, ShapeQueue>& queues() { return queues_; }
  const std::map<Shape, ShapeQueue>& queues() const { return queues_; }

  // For subscribers and lists: without arguments, code and method tables.
  static proto::ActorInfo brief(const proto::ActorInfo& info);
  void check_invariants() const;

 private:
  void leave(Actor& actor);
  void enter(Actor& actor);
  void index(Actor& actor, bool add);

  std::unordered_map<ActorId, Actor> actors_;
  std::map<Name, ActorId> names_;
  std::map<JobId, std::set<ActorId>> by_job_;
  std::map<NodeId, std::set<ActorId>> by_node_;
  std::map<WorkerId, std::set<ActorId>> by_owner_;
  std::map<NodeId, std::set<ActorId>> by_owner_node_;
  std::map<Shape, ShapeQueue> queues_;
  std::deque<ActorId> dead_order_;
  uint64_t last_seq_ = 0;
};

}  // namespace rt::head
