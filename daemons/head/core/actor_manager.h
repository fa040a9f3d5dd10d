// Everything that happens to actors: registration, placement, starts, deaths, restarts and kills,
// and reconciliation with a node that comes back after a lost connection or a restart of the head.
//
// A start is identified by (actor, epoch). The epoch is on disk before a node hears of it, so that
// after any crash an older start is recognised and ended.
//
//   actor_manager.cc             registration, kills, recovery
//   actor_manager_placement.cc   queue -> node, as actor_placement.h decides
//   actor_manager_lives.cc       answers, starts, deaths, restarts, reconciliation
#pragma once

#include <algorithm>
#include <set>

#include "common/base/recent_set.h"
#include "daemons/head/core/actor_placement.h"
#include "daemons/head/core/actors.h"
#include "daemons/head/core/bundle_seats.h"
#include "daemons/head/core/cluster.h"
#include "daemons/head/core/exit_info.h"
#include "daemons/head/core/jobs.h"
#include "daemons/head/core/subscriptions.h"

namespace rt::head {

class ActorManager {
 public:
  struct Env {
    const HeadOptions& options;
    HeadSink& sink;
    Journal& journal;
    Timers& timers;
    Cluster& cluster;
    Subscriptions& subscriptions;
    Jobs& jobs;
    const GroupDirectory& groups;
    // The head counts its starts.
    const int64_t& incarnation;
  };
  explicit ActorManager(Env env);
  ~ActorManager();

  // Requests of clients. register_actor() replies once the actor's record, or the arguments that
  // the request brings, are on disk; a repeated request gets the reply of the first. kill() fails
  // with kInvalid or kNotFound and succeeds for a dead actor. The end of an actor that has no
  // process is on disk when kill() succeeds; if the disk refuses it, the reply is that error.
  void register_actor(const proto::RegisterActorRequest& request, Now now,
                      Reply<proto::RegisterActorReply> reply);
  void kill(const proto::KillActorRequest& request, Now now, Reply<proto::Empty> reply);

  // Answers and reports of nodes. Those about another start than the current one change nothing; a
  // process of such a start is killed.
  void create_answered(const NodeId& node, const ActorId& id, int64_t epoch,
                       const Result<proto::CreateActorReply>& reply, Now now);
  void started(NodeState& node, const ActorId& id, const proto::ActorStarted& report, Now now);
  void died(NodeState& node, const ActorId& id, const proto::ActorDied& report, Now now);
  // Compares the actors that a (re-)registered node reports as living or ended there with those
  // that the directory has on it. If the last changes of an actor did not reach the disk before the
  // head was restarted, the node's report is right.
  struct OfNode {
    google::protobuf::RepeatedPtrField<proto::ActorInfo> live;
    google::protobuf::RepeatedPtrField<proto::EndedActor> ended;
  };
  void node_registered(NodeState& node, const OfNode& of_node, Now now);
  void node_lost(NodeState& node, Now now);

  // Ends of jobs and processes.
  void job_finished(const JobId& job, Now now);
  void owners_dead(const std::vector<WorkerId>& workers, Now now);
  // Ends the actors in the group.
  void group_removed(const GroupId& group, const std::string& why, Now now);
  // The actors and jobs that ended since the last call.
  struct Ended {
    std::set<JobId> jobs;  // Finished jobs whose last actor has ended.
    std::vector<ActorId> actors;
    std::vector<WorkerId> workers;
  };
  Ended take_ended() { return std::exchange(ended_now_, {}); }

  // Recovery after a restart of the head.
  void recover(proto::ActorInfo info, Now now);
  // Every recorded node is back or given up: starts the actors again that no node brought back.
  void nodes_settled(Now now);

  // end_event() runs at the end of every event: ends what dead actors owned, places queued actors,
  // forgets the oldest dead ones. want_placement() makes it look for nodes.
  void end_event(Now now);
  void want_placement() { placement_wanted_ = true; }

  const ActorPlacement& placement() const { return placement_; }
  const ActorDirectory& directory() const { return directory_; }
  void check_invariants() const;

 private:
  using Phase = Actor::Phase;

  void committed(const ActorId& id, const Status& status, Now now);
  // The arguments of an actor in kUnready, which is queued once they are on disk. A repeated
  // request changes nothing.
  void take_arguments(const proto::ActorSpec& spec, Reply<proto::RegisterActorReply> reply);
  // Moves the actor in the directory and updates what is accounted to its node.
  void move(Actor& actor, Phase to, NodeState* node = nullptr);
  void persist(const Actor& actor);
  void publish(const Actor& actor);

  void place(Now now);
  void start(Actor& actor, NodeState& node);
  void send_create(const Actor& actor, const NodeState& node);

  void queue(Actor& actor, Now now);
  // Prepares another start: raises the epoch, and queues the actor once that is on disk and
  // `delay_us` have passed.
  void next_start(Actor& actor, int64_t delay_us, Now now);
  void alive(Actor& actor, NodeState& node, const proto::WorkerAddress& address, int pid, Now now);
  void no_room(Actor& actor, NodeState& node, Now now);
  void start_refused(Actor& actor, NodeState& node, const Error& error, Now now);
  // Restarts or ends an actor whose process is gone.
  void lost(Actor& actor, proto::ExitInfo death, Now now);
  // Ends the actor for good. With kKill its node is told to end the process.
  enum class Process { kGone, kKill };
  void finish(Actor& actor, proto::ExitInfo death, Process process, Now now);
  void send_kill(Actor& actor, const proto::ExitInfo& why, bool graceful);
  void adopt_later_start(Actor& actor, const proto::ActorInfo& later, const NodeState& node);
  // Takes back an actor that lives on the node, as the node says. If it is not the actor's current
  // start, ends the node's process and returns null.
  Actor* take_back(NodeState& node, const proto::ActorInfo& info, Now now);
  // Notes that the actor has ended on the node, as the node says.
  void ended_there(const NodeState& node, Actor& actor, const proto::ExitInfo& death, Now now);

  Env env_;
  ActorDirectory directory_;
  BundleSeats seats_;
  ActorPlacement placement_;
  // Processes of ended actors. What they owned ends with the current event.
  std::vector<WorkerId> dead_owners_;
  // Processes that have ended. What they registered may arrive over another connection after the
  // news of their end.
  RecentSet<WorkerId> ended_{10'000};
  Ended ended_now_;
  bool settled_ = false;  // Whether nodes_settled() was called.
  bool placement_wanted_ = false;
  Timers::Id place_timer_ = 0;
};

}  // namespace rt::head
