// What happens to actors: registration, placement, starts, deaths and restarts, kills, and the
// comparison with what a node says after a lost connection or a restart of the head.
//
// A start is identified by (actor, epoch). The epoch is on disk before a node hears of it, so that
// after any crash an older start is recognised as such and ended.
//
//   actor_manager.cc             registration, kills, queries, recovery
//   actor_manager_placement.cc   queue -> node
//   actor_manager_lives.cc       answers, starts, deaths, restarts, reconciliation
#pragma once

#include <algorithm>
#include <set>

#include "common/resources/node_constraint.h"
#include "daemons/head/core/actors.h"
#include "daemons/head/core/cluster.h"
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
  };
  explicit ActorManager(Env env) : env_(env) {}

  // ---- clients
  void register_actor(const proto::RegisterActorRequest& request, Now now,
                      Reply<proto::RegisterActorReply> reply);
  Status kill(const proto::KillActorRequest& request, Now now);
  Result<proto::GetActorReply> get(const proto::GetActorRequest& request);
  Result<proto::ListActorsReply> list(const proto::ListActorsRequest& request) const;
  // Its current state, once it may be seen.
  const proto::ActorInfo* visible(const ActorId& id) const;

  // ---- nodes
  void create_answered(const NodeId& node, const ActorId& id, int64_t epoch,
                       const Result<proto::CreateActorReply>& reply, Now now);
  void started(NodeState& node, const ActorId& id, const proto::ActorStarted& report, Now now);
  void died(NodeState& node, const ActorId& id, const proto::ActorDied& report, Now now);
  // (Re-)registered: what it says lives there against what we know.
  void node_registered(NodeState& node,
                       const google::protobuf::RepeatedPtrField<proto::ActorInfo>& live, Now now);
  void node_lost(NodeState& node, Now now);

  // ---- lives of others
  void job_finished(const JobId& job, Now now);
  void owners_dead(const std::vector<WorkerId>& workers, Now now);
  // Finished jobs whose last detached actor is gone since the last call.
  std::set<JobId> take_orphaned_jobs() { return std::move(orphaned_jobs_); }
  bool has_living_actors(const JobId& job) { return !directory_.of_job(job).empty(); }
  template <class Fits>
  bool any_living(Fits fits) const {
    return std::any_of(directory_.all().begin(), directory_.all().end(), [&](const auto& entry) {
      return !entry.second.dead() && fits(entry.second.info.spec());
    });
  }

  // ---- recovery after a restart of the head
  void recover(proto::ActorInfo info, Now now);
  // Every known node is back or given up: what they did not bring back is started anew.
  void nodes_settled(Now now);

  // ---- end of each event
  void end_event(Now now);
  void want_placement() { placement_wanted_ = true; }

  void add_demands(std::vector<proto::Demand>* out) const;
  std::optional<std::string> record(const std::string& key) const;
  const ActorDirectory& directory() const { return directory_; }
  void check_invariants() const;

 private:
  using Phase = Actor::Phase;

  Status validate(const proto::ActorSpec& spec) const;
  Status check_job(const proto::ActorSpec& spec);
  void committed(const ActorId& id, const Status& status, Now now);
  // move() of the directory plus what its node has given to it.
  void move(Actor& actor, Phase to, NodeState* node = nullptr);
  void account(Actor& actor, NodeState& node, int sign);
  void persist(const Actor& actor);
  void publish(const Actor& actor);

  void place(Now now);
  NodeState* choose(const Actor& actor, const std::optional<AllowedNodes>& allowed, Now now);
  // Of a constrained actor; the indexes count the live nodes.
  std::optional<AllowedNodes> allowed(const Actor& actor) const;
  // Of one that was given no node now: why none may run it; empty: it may wait.
  std::string unschedulable(const Actor& actor, const std::optional<AllowedNodes>& allowed) const;
  void start(Actor& actor, NodeState& node);
  void send_create(const Actor& actor, const NodeState& node);
  void warn_infeasible(const Shape& shape, ShapeQueue& queue, Now now);

  void queue(Actor& actor, Now now);
  // Another start, with the next epoch, `delay_us` after that is on disk.
  void next_start(Actor& actor, int64_t delay_us, Now now);
  void alive(Actor& actor, NodeState& node, const proto::WorkerAddress& address, int pid, Now now);
  void no_room(Actor& actor, NodeState& node, Now now);
  void start_refused(Actor& actor, NodeState& node, const Error& error, Now now);
  // Its process is gone: restart or end.
  void lost(Actor& actor, proto::ExitInfo death, Now now);
  // Dead for good. kProcessToo: the node is told to end its process.
  enum class Process { kGone, kKill };
  void finish(Actor& actor, proto::ExitInfo death, Process process, Now now);
  void log_end(const Actor& actor, const proto::ExitInfo& death, const char* what);
  void send_kill(Actor& actor, const proto::ExitInfo& why, bool graceful);
  void kill_stray(const NodeState& node, const ActorId& id, const std::string& worker_id,
                  const char* why);

  Env env_;
  ActorDirectory directory_;
  std::vector<WorkerId>
      dead_owners_;  // processes of ended actors: what they owned ends with this event
  std::set<JobId> orphaned_jobs_;
  bool placement_wanted_ = false;
  Timers::Id place_timer_ = 0;
};

proto::ExitInfo exit_info(proto::ExitInfo::Kind kind, std::string message = {});

}  // namespace rt::head
