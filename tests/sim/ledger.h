// What really happened: every execution of every task and every start of every actor, seen from
// above, where no process sees. The invariants that no single core can check are checked here. A
// violation prints the seed and the last events, and aborts.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"

namespace rt::sim {

// What a task does when it runs.
struct TaskPlan {
  int function = 0;  // tasks of one function share measured durations
  ResourceSet resources;
  std::string strategy;
  int64_t duration_us = 1000;
  int64_t blocked_us = 0;  // it waits so long in get() half-way
  int crashes = 0;         // its first so many executions end their worker
  int max_retries = 3;     // -1: no limit
};

struct ActorPlan {
  ResourceSet placement, held;
  std::string name, strategy;
  int64_t constructor_us = 2000;
  bool constructor_raises = false;
  int64_t max_restarts = 0;  // -1: no limit
  bool detached = false;
};

struct TaskRecord {
  TaskPlan plan;
  uint64_t owner = 0;  // process number
  ActorId actor;       // nil: a normal task
  uint64_t order = 0;  // of its owner's submissions
  int executions = 0;
  int incidents = 0;    // times it was in flight when its worker was lost
  int free_passes = 0;  // of these, times it was not charged for: somebody before it was running
  std::map<uint64_t, int> running_on;  // worker process numbers
  bool ended = false;
  int error = 0;  // Code, when it failed
};

struct ActorRecord {
  ActorPlan plan;
  std::map<int64_t, uint64_t> starts;  // epoch -> worker process number
  std::set<uint64_t> living;           // worker processes that hold it now
  int deaths = 0;
  bool kill_asked = false;  // by a user, or because its job or owner ended
};

class Ledger {
 public:
  struct Totals {
    int64_t submitted = 0, succeeded = 0, failed = 0, abandoned = 0, executions = 0, calls = 0;
    int64_t workers_died = 0, reruns_not_charged = 0, overlapping_runs = 0, actor_starts = 0;
  };

  // ---- owners
  void submitted(const TaskId& id, TaskPlan plan, uint64_t owner, const ActorId& actor,
                 uint64_t order);
  // Its worker was lost with it in flight. `charged`: it counts as a failed attempt.
  void incident(const TaskId& id, bool charged);
  void succeeded(const TaskId& id);
  void failed(const TaskId& id, const proto::ErrorValue& error);
  void owner_ended(uint64_t owner);

  // ---- workers
  const TaskRecord& started(const TaskId& id, uint64_t worker);
  void stopped(const TaskId& id, uint64_t worker);  // finished, or its worker died
  void worker_died() { ++totals_.workers_died; }

  // ---- actors
  void actor_created(const ActorId& id, ActorPlan plan) { actors_[id].plan = std::move(plan); }
  void actor_started(const ActorId& id, int64_t epoch, uint64_t worker);
  void actor_ended(const ActorId& id, uint64_t worker);
  void actor_kill_asked(const ActorId& id) { actors_[id].kill_asked = true; }
  const ActorRecord& actor(const ActorId& id) const { return actors_.at(id); }

  // Connections have been broken by hand: what this may excuse is excused from now on.
  void network_fault() { network_faults_ = true; }
  // Node-managers were told that they cannot start processes.
  void spawn_fault() { spawn_faults_ = true; }
  // Every process of the simulation was left alone: then no task may fail but by its own doing.
  void process_fault() { process_faults_ = true; }

  const TaskRecord& task(const TaskId& id) const { return tasks_.at(id); }
  int64_t pending() const { return pending_; }
  int64_t running() const { return running_; }
  const Totals& totals() const { return totals_; }
  // Ids of some pending tasks, for a report.
  std::string describe_pending(size_t limit) const;
  std::map<std::string, int> failures_by_code() const { return failures_; }

 private:
  TaskRecord& record(const TaskId& id);
  void check_cause(const TaskId& id, const TaskRecord& task, const proto::ErrorValue& error) const;
  void end(TaskRecord& task);

  std::unordered_map<TaskId, TaskRecord> tasks_;
  std::map<ActorId, ActorRecord> actors_;
  std::unordered_map<uint64_t, std::set<TaskId>> open_by_owner_;
  std::map<std::string, int> failures_;
  Totals totals_;
  int64_t pending_ = 0, running_ = 0;
  bool network_faults_ = false, spawn_faults_ = false, process_faults_ = false;
};

// The simulation is wrong: says so with its seed and its last events, and aborts.
[[noreturn]] void violation(const std::string& what);

}  // namespace rt::sim
