// The processes of this node: workers we started, and drivers that connected.
//
//   kStarting -> kIdle <-> kLeased          a driver is kDriver from its registration on
//                kIdle  -> kActor           and everything ends through kDying; removed once its
//                end is known
//
// A record set: NodeCore decides. One setter checks every transition.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

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
  JobId job;                  // nil: not used yet; afterwards only for this job
  bool outlives_job = false;  // and only for what is detached of it, or only for what is not
  int pid = 0;
  std::string socket_path;
  bool connected = false;

  LeaseId lease = 0;     // kLeased
  ActorId actor;         // kActor
  ResourceSet held;      // of the lease or the actor
  GpuShare gpus;         // of `held`
  bool blocked = false;  // its CPU is lent to others

  proto::ExitInfo intent;  // kDying by our hand: why. kind UNKNOWN: not our doing
  bool dismissed = false;  // told to leave at once; killed if it does not
  bool forced = false;     // killed, or its connection broke: must be gone soon
};

class WorkerPool {
 public:
  explicit WorkerPool(uint64_t seed) : rng_(seed) {}

  Worker& add_starting(const WorkerKind& kind, int64_t now_us);
  Worker& add_driver(const WorkerId& id, JobId job, int64_t now_us);
  Worker* find(const WorkerId& id);
  const Worker* find(const WorkerId& id) const;
  void set_state(Worker& worker, WorkerState state, int64_t now_us);
  void remove(const WorkerId& id);

  // An idle worker of `kind` for `job`, or for what outlives it: one used for that before, else an
  // unused one. Null: none.
  Worker* idle_for(const WorkerKind& kind, JobId job, bool outlives_job);
  // The one that has been idle longest; of another job than `not_job` unless nil. Null: none.
  Worker* longest_idle(JobId not_job = JobId::nil());

  int count(WorkerState state) const { return counts_[static_cast<int>(state)]; }
  int processes() const { return static_cast<int>(workers_.size()) - count(WorkerState::kDriver); }
  int starting(const WorkerKind& kind) const;
  // Workers that serve tasks, or will: what prestart_workers counts.
  int pooled() const {
    return count(WorkerState::kStarting) + count(WorkerState::kIdle) + count(WorkerState::kLeased);
  }
  const std::map<WorkerId, std::unique_ptr<Worker>>& all() const { return workers_; }
  void check_invariants() const;

 private:
  Rng rng_;
  std::map<WorkerId, std::unique_ptr<Worker>> workers_;  // ordered: decisions are reproducible
  std::set<WorkerId> idle_;
  std::map<WorkerKind, int> starting_;
  int counts_[6] = {};
};

}  // namespace rt::node
