// The actors that the head has placed on this node, from CreateActor to the end of their processes:
// which of them wait, for what, and which worker each gets. NodeCore says when.
//
//   kWaitingResources -> kWaitingWorker -> kStarting -> kAlive
//
// An actor that is still to be started can be failed; one that has a worker ends with it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/config/settings.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/actor_ends.h"
#include "daemons/node_manager/core/bundle_line.h"
#include "daemons/node_manager/core/bundles.h"
#include "daemons/node_manager/core/node_identity.h"
#include "daemons/node_manager/core/node_sink.h"
#include "daemons/node_manager/core/worker_pool.h"
#include "daemons/node_manager/core/worker_starts.h"

namespace rt::node {

struct HostedActor {
  enum class State { kWaitingResources, kWaitingWorker, kStarting, kAlive };
  proto::CreateActorRequest request;
  ActorId id;
  JobId job;
  bool outlives_job = false;  // it is detached, or was made by a detached actor
  WorkerKind kind;
  RoomKey room;  // a bundle that is here, if the actor has a placement group
  // `placement` is taken until the constructor has run, `lifetime` from then on.
  ResourceSet placement, lifetime;
  State state = State::kWaitingResources;
  int64_t since_us = 0;  // when it entered kWaitingResources or kWaitingWorker
  WorkerId worker;       // from kStarting on
  GpuShare gpus;         // in kWaitingWorker; Worker::gpus has them afterwards
};

class HostedActors {
 public:
  // All of them outlive the actors.
  struct Parts {
    NodeSink& sink;
    const Settings& settings;
    const NodeIdentity& me;
    Rooms& rooms;
    const BundleLine& bundle_line;
    WorkerPool& pool;
    WorkerStarts& starts;
  };
  explicit HostedActors(const Parts& node);
  ~HostedActors();

  const std::map<ActorId, HostedActor>& all() const { return actors_; }
  // Returns the actors in kWaitingResources and kWaitingWorker, the oldest first.
  const std::deque<ActorId>& waiting() const { return waiting_; }
  const HostedActor& at(const ActorId& id) const { return actors_.at(id); }
  const HostedActor* find(const ActorId& id) const;

  // ---- start
  // Adds an actor that is not here, or fails it and returns false if this node never has room for
  // it: a node that is `leaving` has none.
  bool add(const proto::CreateActorRequest& request, bool outlives_job, bool leaving, Now now);
  // Takes resources and workers for those that wait, as far as there are any, and fails those that
  // have waited for resources in vain.
  void place(Now now);
  // Fails those of the actors that wait for which `which` returns true. With `no_resources` the
  // head places them on another node.
  void fail_waiting(const std::function<bool(const HostedActor&)>& which,
                    const proto::ExitInfo& why, bool no_resources);
  // Fails this one of them.
  void fail_waiting(const ActorId& id, const proto::ExitInfo& why, bool no_resources) {
    fail(actors_.at(id), why, no_resources);
  }
  // The constructor has run: `answer` goes to the head.
  void set_alive(const ActorId& id, const proto::CreateActorReply& answer);
  // The constructor has failed, and the process is ended for it. `answer` says why.
  void set_failed(const ActorId& id, const proto::CreateActorReply& answer);
  // The head considers the actor gone, and another incarnation takes its place.
  void forget(const ActorId& id);

  // ---- end
  // The process of an actor begins to end.
  void begin_end(Worker& worker);
  // Returns what runs in the process, or ran there until it began to end; nil: none.
  ActorId in_process(const Worker& worker) const;
  // The process has been reaped: the head is told of the end of its actor, if it had one.
  void ended(const WorkerId& worker, const proto::ExitInfo& info);
  // The last end of the actor here, or null: an incarnation is started at most once.
  const ActorEnds::End* last_end(const ActorId& id) const { return ends_.find(id); }

  void check_invariants() const;

 private:
  // Chooses the actor's room. Returns why this node never has room for it, or an empty text.
  std::string unplaceable(HostedActor& actor, bool leaving) const;
  bool has_room_for(const HostedActor& actor) const;
  void take_resources(HostedActor& actor, Now now);
  void take_worker(HostedActor& actor, Worker& worker, Now now);
  // Erases the actor, which has no worker yet.
  void fail(HostedActor& actor, const proto::ExitInfo& why, bool no_resources);

  const Parts node_;
  std::map<ActorId, HostedActor> actors_;
  std::deque<ActorId> waiting_;
  ActorEnds ends_;
};

}  // namespace rt::node
