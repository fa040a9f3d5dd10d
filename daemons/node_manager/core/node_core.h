// The decisions of one node: who gets which worker, when processes start and end, where actors live
// here.
//
// Pure and single-threaded: events come in through methods with the time, decisions go out through
// NodeSink. Constructed without I/O, so the simulator runs hundreds of them. tick() is to be called
// when next_tick_us() says so.
//
//   node_core.cc           construction, time, reports, invariants     node_core_leases.cc demand,
//   grants, redirects, revocation node_core_workers.cc   processes from start to exit
//   node_core_actors.cc   actors from CreateActor to their death node_core_drain.cc     leaving the
//   cluster on request
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/settings.h"
#include "common/proto/metrics.pb.h"
#include "common/resources/node_constraint.h"
#include "daemons/node_manager/core/cluster_view.h"
#include "daemons/node_manager/core/lease_queue.h"
#include "daemons/node_manager/core/local_resources.h"
#include "daemons/node_manager/core/node_sink.h"
#include "daemons/node_manager/core/runtime_env.h"
#include "daemons/node_manager/core/worker_pool.h"

namespace rt::node {

struct NodeIdentity {
  NodeId id;
  std::string ip;
  int port = 0;
  ResourceSet total;
  uint64_t seed = 1;  // of worker ids
  Labels labels = {};
  std::vector<std::string> gpu_names = {};  // by device; missing ones are named by their number
};

// Upper bounds of NodeCounters.lease_wait.
inline constexpr double kLeaseWaitBoundsMs[] = {1, 5, 10, 50, 100, 500, 1000, 5000, 10000, 60000};

// One actor that is here, or on its way.
struct HostedActor {
  enum class State { kWaitingResources, kWaitingWorker, kStarting, kAlive };
  proto::CreateActorRequest request;
  ActorId id;
  JobId job;
  bool outlives_job = false;  // it is detached, or what a detached actor made
  WorkerKind kind;
  ResourceSet placement, lifetime;  // needed to place it; held while it lives
  State state = State::kWaitingResources;
  int64_t since_us = 0;
  WorkerId worker;  // from kStarting on
  GpuShare gpus;    // in kWaitingWorker; then its worker's
};

class NodeCore {
 public:
  // `sink` and `settings` outlive the core.
  NodeCore(NodeSink& sink, const Settings& settings, const NodeIdentity& identity);

  // ---- time
  // Processes can be started: the warm ones are.
  void start(Now now);
  void tick(Now now);
  // Steady time of the next tick that may matter; -1: none until something happens.
  int64_t next_tick_us(Now now) const;
  // No more processes are started, no more leases given.
  void stop() { stopping_ = true; }

  // ---- owners
  void set_demand(OwnerId owner, const proto::LeaseDemand& demand, Now now);
  void return_lease(OwnerId owner, LeaseId lease, bool worker_failed, Now now);
  void owner_closed(OwnerId owner, Now now);

  // ---- processes
  void worker_spawned(const WorkerId& id, int pid, Now now);
  void worker_start_failed(const WorkerId& id, const std::string& why, Now now);
  // kNotFound: no worker of ours; kInvalid: it is not one that is expected to register.
  Status worker_registered(const WorkerId& id, int pid, const std::string& socket_path, Now now);
  // It cannot make the runtime environment it was started for, and leaves: whoever waits for such a
  // worker fails with `why`.
  void worker_setup_failed(const WorkerId& id, const std::string& why, Now now);
  Status add_driver(const WorkerId& id, JobId job, int pid, const std::string& socket_path,
                    Now now);
  void worker_disconnected(const WorkerId& id, Now now);
  void worker_exited(const WorkerId& id, const ProcessEnd& end, Now now);
  void set_blocked(const WorkerId& id, bool blocked, Now now);
  void job_finished(JobId job, Now now);
  void job_over(JobId job, Now now);  // and what outlived it is gone, too

  // ---- head
  void create_actor(const proto::CreateActorRequest& request, Now now);
  // The worker's answer to start_actor(). An error means that it could not be asked.
  void actor_start_done(const ActorId& id, int64_t epoch,
                        const Result<proto::CreateActorReply>& reply, Now now);
  void kill(const proto::KillWorkerRequest& request, Now now);
  void node_changed(const proto::Node& node);
  void nodes_settled(Now now);  // after a batch of node_changed()

  // ---- entrypoints of submitted jobs
  // They hold these until release_job(); the names of their GPUs. kResourceExhausted: not free now.
  // kAlreadyExists: it holds some.
  Result<std::vector<std::string>> hold_for_job(const std::string& submission_id,
                                                const ResourceSet& resources, Now now);
  void release_job(const std::string& submission_id, Now now);

  // ---- leaving
  // From now on no lease, no actor and no entrypoint comes here; what is here goes on, leases are
  // asked back.
  void drain(Now now);
  bool draining() const { return draining_; }
  // What would be lost if the node left now, for people; empty: nothing.
  std::string busy_with() const;

  // ---- questions
  const Worker* worker(const WorkerId& id) const { return pool_.find(id); }
  const WorkerPool& pool() const { return pool_; }
  const LeaseQueue& leases() const { return queue_; }
  const LocalResources& resources() const { return resources_; }
  const ClusterView& cluster() const { return view_; }
  const std::map<ActorId, HostedActor>& actors() const { return actors_; }
  const proto::NodeCounters& counters() const { return counters_; }
  // Tasks that wait for leases here, and those among them that no node could run.
  std::pair<int64_t, int64_t> waiting_tasks() const;
  const proto::ExitInfo* exit_of(const WorkerId& id) const;
  // Workers and drivers that live, and the last that ended (as many as exit_of() knows), each with
  // what is known of it.
  void fill_processes(proto::ProcessesReply* reply) const;
  // Environments that workers were started for, and how making them ended.
  void fill_runtime_envs(proto::RuntimeEnvsReply* reply) const {
    runtime_envs_.fill(workers_by_env(), reply);
  }
  proto::WorkerAddress address_of(const Worker& worker) const;
  // Negative amounts (debts) are reported as absent.
  void fill_report(proto::ResourceReport* report) const;
  void check_invariants() const;

 private:
  struct StartTrouble {
    int failures = 0;  // in a row
    int64_t not_before_us = 0;
    std::string last;  // for people
  };
  enum class Served { kGranted, kRedirected, kNoWorker, kStuck };
  class Round;  // one pass over waiting demands; node_core_leases.cc

  void pump(Now now);
  void count_grant(int64_t waited_us);

  // leases
  void serve_leases(Now now);
  Served serve_one(Demand& demand, Round& round, Now now);
  Served serve_constrained(Demand& demand, Round& round, Now now);
  Served serve_here(Demand& demand, Round& round, uint64_t turn, Now now);
  // The candidate for a constrained demand's next lease, kNoNode: none now.
  int pick_constrained(const Demand& demand, Round& round, const AllowedNodes& allowed);
  void fail_demand(Demand& demand, const std::string& message, Now now);
  bool feasible_here(const ResourceSet& request) const {
    return !draining_ && resources_.feasible(request);
  }
  bool may_run_here(const Demand& demand) const {
    return !demand.not_here && feasible_here(demand.resources);
  }
  bool may_run_anywhere(const Demand& demand, Round& round) const;
  void grant(Demand& demand, Worker& worker, Now now);
  void flag_infeasible(Now now);
  void revoke_for_waiting(Now now);
  void revoke_for(const ResourceSet& request, int own_leases, const Demand* waiter);
  void end_lease(LeaseId id, bool worker_stays, Now now);
  void refuse(OwnerId owner, uint64_t class_id, const std::string& message,
              Code code = Code::kInternal);
  ResourceSet lendable(const Worker& worker) const;  // what its death or return would free now

  // processes
  void need_worker(const WorkerKind& kind) { ++needed_[kind]; }
  bool may_start(const WorkerKind& kind, Now now) const;
  void start_workers(Now now);
  bool start_one(const WorkerKind& kind, Now now);
  void start_trouble(const WorkerKind& kind, const std::string& why, Now now);
  // Of a worker that is kStarting and will not be for longer. `error` empty: it registers.
  void note_runtime_env(const Worker& worker, const std::string& error, Now now);
  std::map<std::string, int> workers_by_env() const;
  void give_up_on(const WorkerKind& kind, const std::string& message, Code code, Now now);
  void release_held(Worker& worker);
  // Leaves whatever it was doing: lease, actor, resources. Its end is reported once the process is
  // reaped.
  void begin_dying(Worker& worker, Now now);
  void end_worker(Worker& worker, proto::ExitInfo::Kind why, const std::string& message, Now now);
  void dismiss_workers_of(JobId job, bool also_outliving, Now now);
  void dismiss_worker(Worker& worker, proto::ExitInfo::Kind why, const std::string& message,
                      Now now);
  void finish(Worker& worker, const ProcessEnd& end, Now now);
  void retire_idle(Now now);
  void reap_overdue(Now now);
  proto::ExitInfo describe_end(const Worker& worker, const ProcessEnd& end) const;
  proto::ProcessInfo describe(const Worker& worker) const;
  void remember_exit(proto::ProcessInfo process, const proto::ExitInfo& info, Now now);

  // actors
  void place_actors(Now now);
  void fail_creation(HostedActor& actor, const proto::ExitInfo& why, bool no_resources, Now now);
  void actor_lost(const ActorId& id, const proto::ExitInfo& info);

  NodeSink& sink_;
  const Settings& settings_;
  const NodeIdentity me_;
  LocalResources resources_;
  GpuPool gpus_;
  ClusterView view_;
  WorkerPool pool_;
  LeaseQueue queue_;
  std::map<ActorId, HostedActor> actors_;
  std::deque<ActorId> waiting_actors_;  // kWaitingResources and kWaitingWorker, oldest first

  struct JobHold {
    ResourceSet resources;
    GpuShare gpus;
  };
  std::map<std::string, JobHold> job_holds_;  // by submission id

  std::map<WorkerKind, int> needed_;  // workers that leases and actors could use right now
  std::map<WorkerKind, StartTrouble> trouble_;
  RuntimeEnvTable runtime_envs_;
  std::unordered_map<WorkerId, proto::ProcessInfo> exits_;
  std::deque<WorkerId> exit_order_;
  std::map<WorkerId, ActorId> dying_actors_;  // to report once the cause is known
  std::unordered_set<JobId> finished_jobs_;
  std::deque<JobId> finished_order_;
  proto::NodeCounters counters_;
  uint64_t spread_turn_ = 0;
  int64_t announced_version_ = 0;  // of resources_, last told to the sink
  bool started_ = false, stopping_ = false, draining_ = false;
};

}  // namespace rt::node
