// The processes of this node: workers that the node-manager started, and drivers that connected.
//
//   kStarting -> kIdle <-> kLeased
//                kIdle  -> kActor
//
// A driver is kDriver from its registration on. Every state leads to kDying, and a process is
// removed from kDying once its end is known. This class only records; NodeCore decides.
// set_state() checks every transition.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/resources/resource_set.h"
#include "daemons/node_manager/core/gpu_pool.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

enum class WorkerState { kStarting, kIdle, kLeased, kActor, kDriver, kDying };
std::string_view state_name(WorkerState state);

struct Worker {
  WorkerId id;
  WorkerKind kind;
  WorkerState state = WorkerState::kStarting;
  int64_t since_us = 0;  // when it entered `state`
  int64_t start_wall_us = 0;
  JobId job;  // nil until first used; from then on the worker serves this job only
  // Whether the worker serves work that outlives the job (JobConfig.outlives_job), or only work
  // that ends with it. Like `job` this is fixed by the first use.
  bool outlives_job = false;
  int pid = 0;
  std::string socket_path;
  bool connected = false;

  LeaseId lease = 0;  // in kLeased
  ActorId actor;      // in kActor
  // Where `held` is taken from. It stays until a killed process has been reaped: a bundle that is
  // given back waits for that.
  RoomKey room;
  ResourceSet held;      // resources of the lease or the actor
  GpuShare gpus;         // the GPU devices in `held`
  bool blocked = false;  // its CPU is lent to others; WorkerPool::set_blocked()

  // Why this node-manager ends the process, if it does. With kind UNKNOWN the reported kind
  // follows from the exit status.
  proto::ExitInfo intent;
  // It was asked to leave once its work is done, and is killed at this steady time; 0: no limit,
  // because it has work to finish.
  int64_t leave_by_us = 0;
  bool dismissed = false;  // was asked to exit at once and is killed if it does not
  bool forced = false;     // was killed, or closed its connection: its end must follow soon
};

// The resources that the worker's death, or the return of its lease, would free now: those it
// holds, less the CPU that it has given back while it is blocked.
ResourceSet releasable_resources(const Worker& worker);

class WorkerPool {
 public:
  // `seed` is that of the ids of its workers.
  WorkerPool(const NodeId& node, uint64_t seed);
  ~WorkerPool();

  Worker& add_starting(const WorkerKind& kind, Now now);
  Worker& add_driver(const WorkerId& id, JobId job, Now now);
  Worker* find(const WorkerId& id);
  const Worker* find(const WorkerId& id) const;
  void set_state(Worker& worker, WorkerState state, Now now);
  void set_blocked(Worker& worker, bool blocked);
  void remove(const WorkerId& id);

  // Returns an idle worker of `kind` that has served (`job`, `outlives_job`) before, else one that
  // has not been used, else null.
  Worker* idle_for(const WorkerKind& kind, JobId job, bool outlives_job);
  // Returns an idle worker of `kind` that has not been used, or null. An actor may only have such a
  // worker: one that has run tasks may own objects that others hold and has to live as long as
  // they do, whereas the process of an actor ends with the actor.
  Worker* unused(const WorkerKind& kind);
  // Returns the worker that has been idle longest, or null.
  Worker* longest_idle();

  int count(WorkerState state) const { return counts_[static_cast<int>(state)]; }
  int processes() const { return static_cast<int>(workers_.size()) - count(WorkerState::kDriver); }
  // The number of leased workers whose tasks are blocked.
  int blocked() const { return blocked_; }
  int starting(const WorkerKind& kind) const;
  // The number of workers that run tasks or can: the setting prestart_workers is compared with it.
  int pooled() const {
    return count(WorkerState::kStarting) + count(WorkerState::kIdle) + count(WorkerState::kLeased);
  }
  const std::map<WorkerId, std::unique_ptr<Worker>>& all() const { return workers_; }
  void check_invariants() const;

 private:
  const NodeId node_;
  Rng rng_;
  std::map<WorkerId, std::unique_ptr<Worker>> workers_;  // ordered, for reproducible decisions
  std::set<WorkerId> idle_;
  std::map<WorkerKind, int> starting_;
  int counts_[6] = {};  // by WorkerState
  int blocked_ = 0;
};

}  // namespace rt::node
