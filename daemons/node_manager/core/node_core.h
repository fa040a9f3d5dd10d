// The decisions of one node: which owner gets which worker, when processes start and end, and in
// which worker an actor lives.
//
// NodeCore is deterministic and single-threaded. Events come in through methods, with the time as
// an argument; decisions go out through NodeSink. There is no I/O, so the simulator runs hundreds
// of cores in one process. The caller must call tick() when next_tick_us() says so.
//
// It orders the events; its parts decide:
//
//   workers.h        processes from start to exit
//   hosted_actors.h  actors from CreateActor to their end
//   leases.h         demands, and the leases that are out
//   bundle_desk.h    bundles of placement groups
//   job_holds.h      what the entrypoints of submitted jobs hold
//   work_ends.h      what the end of a process ends with it
//
//   node_core_workers.cc, node_core_actors.cc, node_core_drain.cc   the events of each
//
// Questions are asked of its view (node_view.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/recent_set.h"
#include "common/base/status.h"
#include "common/config/settings.h"
#include "common/proto/metrics.pb.h"
#include "daemons/node_manager/core/bundle_desk.h"
#include "daemons/node_manager/core/bundle_line.h"
#include "daemons/node_manager/core/bundles.h"
#include "daemons/node_manager/core/cluster_view.h"
#include "daemons/node_manager/core/hosted_actors.h"
#include "daemons/node_manager/core/job_holds.h"
#include "daemons/node_manager/core/leases.h"
#include "daemons/node_manager/core/node_identity.h"
#include "daemons/node_manager/core/node_sink.h"
#include "daemons/node_manager/core/node_view.h"
#include "daemons/node_manager/core/work_ends.h"
#include "daemons/node_manager/core/workers.h"

namespace rt::node {

class NodeCore {
 public:
  // `sink` and `settings` outlive the core.
  NodeCore(NodeSink& sink, const Settings& settings, const NodeIdentity& identity);

  // ---- time
  // Allows processes to be started, and starts the first prestart_workers of them.
  void start(Now now);
  void tick(Now now);
  // The steady time at which tick() has something to do, or -1 until the next event.
  int64_t next_tick_us() const { return tick_at_us_ >= 0 && needs_ticks() ? tick_at_us_ : -1; }
  // Afterwards no process is started and no lease is granted.
  void stop() { stopping_ = true; }

  // ---- owners
  // Replaces what the owner wants in one scheduling class. A demand that cannot be accepted is
  // answered with NodeSink::notice(). `process` is the owner if it is a process of this node, else
  // nil.
  void set_demand(OwnerId owner, const WorkerId& process, const proto::LeaseDemand& demand,
                  Now now);
  // A worker that failed is ended, and one that leaves is neither leased again nor ended. An
  // unknown lease, or one of another owner, is ignored.
  void return_lease(OwnerId owner, const proto::LeaseReturn& request, Now now);
  // Drops the demands of an owner whose connection broke, and ends the workers that it had leased.
  void owner_closed(OwnerId owner, Now now);

  // ---- processes
  void worker_spawned(const WorkerId& id, int pid, Now now);
  // There is no process; `why` is for people.
  void worker_start_failed(const WorkerId& id, const std::string& why, Now now);
  // Returns kNotFound if this node-manager did not start such a worker, kInvalid if the worker is
  // not in kStarting.
  Status worker_registered(const WorkerId& id, int pid, const std::string& socket_path, Now now);
  // The worker could not make the runtime environment it was started for, and exits. Every demand
  // and actor that waits for a worker of this kind fails with `why`.
  void worker_setup_failed(const WorkerId& id, const std::string& why, Now now);
  // Returns kInvalid for a nil job, kAlreadyExists if the driver is connected.
  Status add_driver(const WorkerId& id, JobId job, int pid, const std::string& socket_path,
                    Now now);
  // A registered worker or driver has lost its connection to this node-manager. A worker is
  // killed.
  void worker_disconnected(const WorkerId& id, Now now);
  // A worker answers to NodeSink::ask_exit(): it has read that and finishes its work, for
  // which there is no limit; or its work is done, and it has worker_exit_timeout_ms to run its exit
  // handlers.
  enum class Leaving { kHasHeard, kWorkIsDone };
  void worker_leaves(const WorkerId& id, Leaving stage, Now now);
  // A worker's process has been reaped.
  void worker_exited(const WorkerId& id, const ProcessEnd& end, Now now);
  // The worker's thread starts or stops waiting in get/wait; meanwhile its CPU is lent to others.
  void set_blocked(const WorkerId& id, bool blocked, Now now);
  // Ends everything of the job except what outlives it (JobConfig.outlives_job).
  void job_finished(JobId job, Now now);
  // Ends that as well: no detached actor of the job is left.
  void job_over(JobId job, Now now);

  // ---- head
  // Answered by NodeSink::actor_created(), possibly before this call returns.
  void create_actor(const proto::CreateActorRequest& request, Now now);
  // The worker's reply to NodeSink::start_actor(). An error means that the call failed.
  void actor_start_done(const ActorId& id, int64_t epoch,
                        const Result<proto::CreateActorReply>& reply, Now now);
  void kill(const proto::KillWorkerRequest& request, Now now);
  // A node has joined, left or changed. Takes effect with the next nodes_settled().
  void node_changed(const proto::Node& node);
  void nodes_settled(Now now);  // ends a batch of node_changed()

  // ---- bundles of placement groups
  // Answered by NodeSink::bundles_prepared(), possibly before this call returns: at once, or when
  // leases that were revoked for it have come back, or when it has waited for that in vain. A
  // request that is repeated gets the same answer, and an attempt that is given back
  // (return_bundles()) before it comes is refused.
  void prepare_bundles(const proto::PrepareBundlesRequest& request, Now now);
  // Kills what runs in the bundles. They are free once those processes have been reaped.
  void return_bundles(const proto::ReturnBundlesRequest& request, Now now);

  // The connection to the head is lost. Bundles that wait are dropped: the head that comes back
  // need not be the one that asked, and would not know of them.
  void head_lost(Now now);

  // ---- entrypoints of submitted jobs
  // Takes `resources` for the entrypoint until release_job(). Returns the names of its GPUs,
  // kResourceExhausted if the resources are not free or the node is draining, and kAlreadyExists
  // if the entrypoint holds resources already.
  Result<std::vector<std::string>> hold_for_job(const std::string& submission_id,
                                                const ResourceSet& resources, Now now);
  void release_job(const std::string& submission_id, Now now);

  // ---- leaving
  // From now on the node accepts no lease, actor or entrypoint. What runs here goes on; leases are
  // revoked, so that they come back once their running tasks end.
  // Asked for again, it goes on with the new deadline.
  void drain(const proto::NodeDrain& drain, Now now);

  // ---- questions
  const NodeView& view() const { return view_; }
  // Aborts the process if the records contradict each other. For tests and the simulator.
  void check_invariants() const { view_.check_invariants(); }

 private:
  // Notes when the next tick is due, when an event ends.
  class Event {
   public:
    Event(NodeCore& core, Now now) : core_(core), now_(now) {}
    ~Event() { core_.end_event(now_); }
    Event(const Event&) = delete;

   private:
    NodeCore& core_;
    const Now now_;
  };

  void end_event(Now now);
  bool needs_ticks() const;
  // Acts on whatever the last event has made possible: places actors, serves leases, starts
  // workers.
  void pump(Now now);

  NodeSink& sink_;
  const Settings& settings_;
  const NodeIdentity me_;
  Rooms rooms_;
  BundleLine bundle_line_;
  proto::NodeCounters counters_;
  RecentSet<JobId> finished_jobs_{10'000};
  ClusterView cluster_;
  JobHolds job_holds_;
  WorkEnds work_ends_;
  Workers workers_;
  HostedActors actors_;
  Leases leases_;
  BundleDesk bundle_desk_;
  int64_t announced_version_ = 0;  // rooms_.version() at the last resources_changed()
  bool started_ = false, stopping_ = false;
  int64_t tick_at_us_ = -1;  // set since an event needed ticks, until the tick
  std::optional<proto::NodeDrain> drain_;
  const NodeView view_;
};

}  // namespace rt::node
