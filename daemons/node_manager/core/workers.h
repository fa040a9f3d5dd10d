// The processes of a node from their start to their end: which are started for those that wait, how
// they are asked to leave, and when they are killed. NodeCore decides what they work on.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/settings.h"
#include "common/proto/metrics.pb.h"
#include "daemons/node_manager/core/bundles.h"
#include "daemons/node_manager/core/exit_records.h"
#include "daemons/node_manager/core/node_identity.h"
#include "daemons/node_manager/core/node_sink.h"
#include "daemons/node_manager/core/runtime_env.h"
#include "daemons/node_manager/core/worker_pool.h"
#include "daemons/node_manager/core/worker_starts.h"

namespace rt::node {

class Workers {
 public:
  // Hears what becomes of the processes. It is called in the middle of a change: it may give back
  // what a worker holds, and must not start or end processes.
  class Listener {
   public:
    virtual ~Listener() = default;
    // The lease or the actor of the worker ends; what it holds is free again.
    virtual void work_ended(Worker& worker, Now now) = 0;
    // Returns what runs in the process, or ran there until it began to end; nil: no actor.
    virtual ActorId actor_in(const Worker& worker) const = 0;
    // The process has been reaped. It was in `room`.
    virtual void process_ended(const RoomKey& room, const proto::ExitInfo& info) = 0;
    // No worker of this kind can start, so all that waits for one fails.
    virtual void cannot_start(const WorkerKind& kind, const std::string& why, Code code,
                              Now now) = 0;
  };
  // All of them outlive the workers.
  struct Parts {
    Listener& listener;
    NodeSink& sink;
    const Settings& settings;
    const NodeIdentity& me;
    Rooms& rooms;
    proto::NodeCounters& counters;
  };
  explicit Workers(const Parts& node);
  ~Workers();

  // The records. States are changed by whoever gives out work.
  WorkerPool& pool() { return pool_; }
  const WorkerPool& pool() const { return pool_; }
  WorkerStarts& starts() { return starts_; }
  const WorkerStarts& starts() const { return starts_; }

  // ---- starts
  // Starts processes for those that wait, and unless the node is `leaving` those that it keeps
  // without need.
  void start_needed(bool leaving, Now now);
  void spawned(const WorkerId& id, int pid);
  // These return false if the process is not known.
  bool start_failed(const WorkerId& id, const std::string& why, Now now);
  bool setup_failed(const WorkerId& id, const std::string& why, Now now);
  // Tells the driver once of a bound that has held up a start for something of its job since then.
  void warn_of_bound(const WorkerKind& kind, JobId job, const std::string& what, int64_t since_us,
                     Now now);
  // The results are those of NodeCore::worker_registered() and add_driver().
  Status registered(const WorkerId& id, int pid, const std::string& socket_path, Now now);
  Status add_driver(const WorkerId& id, JobId job, int pid, const std::string& socket_path,
                    Now now);

  // ---- ends
  // Gives back what the worker holds.
  void release_held(Worker& worker);
  // Takes the worker's work away and makes it kDying.
  void begin_dying(Worker& worker, Now now);
  // Kills a worker.
  void end(Worker& worker, proto::ExitInfo::Kind why, const std::string& message, Now now);
  // Ends a worker whose work is of no use any more. It is asked to exit at once by itself, so that
  // it can send the task events it has recorded, and killed if it does not.
  void dismiss(Worker& worker, proto::ExitInfo::Kind why, const std::string& message, Now now);
  // Dismisses the workers of a job that has finished; of those that outlive it only on request.
  void dismiss_all_of(JobId job, bool also_outliving, Now now);
  // Asks the worker to end when its work is done.
  void ask_to_leave(Worker& worker, const proto::KillWorkerRequest& request, Now now);
  // Asks idle workers to leave that are not needed, and kills those that should have left.
  void retire_idle(Now now);
  void reap_overdue(Now now);
  // Return false if the process is not known, or is a driver's, whose end is complete.
  bool disconnected(const WorkerId& id, Now now);
  bool exited(const WorkerId& id, const ProcessEnd& end, Now now);
  // Whether time alone may change something. `started`: processes may be started.
  bool needs_ticks(bool started) const;

  // ---- for people
  // How a worker or driver ended, or null if it lives, was never here or has been forgotten (the
  // last ExitRecords::kMost are kept).
  const proto::ExitInfo* exit_of(const WorkerId& id) const { return exits_.find(id); }
  // Adds the living workers and drivers, and those whose end exit_of() knows.
  void fill_processes(proto::ProcessesReply* reply) const;
  // Adds the runtime environments that workers were started for, with the outcome.
  void fill_runtime_envs(proto::RuntimeEnvsReply* reply) const {
    runtime_envs_.fill(by_runtime_env(), reply);
  }
  proto::WorkerAddress address_of(const Worker& worker) const;
  void check_invariants() const;

 private:
  int warm() const { return starts_.warm(node_.me.total.get("CPU")); }
  bool start_one(const WorkerKind& kind, Now now);
  // Records a failed start and backs off; after worker_start_retries failures gives up.
  void record_failure(const WorkerKind& kind, const std::string& why, Now now);
  // Records the outcome for the runtime environment of a worker that leaves kStarting; `error` is
  // empty if the worker registers.
  void note_runtime_env(const Worker& worker, const std::string& error, Now now);
  std::map<std::string, int> by_runtime_env() const;
  void retire(Worker& idle, const std::string& why, Now now);
  // Reports the end of a process that has been reaped.
  void finish(Worker& worker, const ProcessEnd& end, Now now);
  void driver_left(Worker& driver, Now now);

  const Parts node_;
  WorkerPool pool_;
  WorkerStarts starts_;
  RuntimeEnvTable runtime_envs_;
  ExitRecords exits_;
};

}  // namespace rt::node
