// The record of what really happened in a simulation: every execution of every task and every
// start of every actor, of all processes together. It checks the invariants that no single core
// can check. A violation prints the seed and the last events, and aborts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "tests/sim/group_ledger.h"

namespace rt::sim {

// A value in the object store of the node `home`.
struct StoredValue {
  ObjectId id;
  int64_t size = 0;
  NodeId home;
};

// The properties of a task, and what it does when it runs.
struct TaskPlan {
  int function = 0;  // owners measure durations per function
  ResourceSet resources;
  proto::SchedulingStrategy strategy = proto::DEFAULT;
  int64_t duration_us = 1000;
  int64_t blocked_us = 0;  // how long it waits in get() half-way; 0: it does not
  // A task that its owner submits half-way, and that it waits for in get(). If it `polls`, it waits
  // in a loop around wait() without a time-out, so that its node-manager does not learn of the
  // wait.
  std::shared_ptr<const TaskPlan> child;
  bool polls = false;
  std::vector<StoredValue> arguments;
  NodeId home;  // in the ledger: the node of its owner
  // The size of a value that it stores half-way, before it waits, and frees at its end; 0: none.
  int64_t makes = 0;
  // How long its arguments are not ready after it was submitted.
  int64_t unready_us = 0;
  // Variables of its runtime environment. In the ledger also those that its job has for it.
  std::map<std::string, std::string> variables;
  int crashes = 0;  // how many executions, from the first one on, crash their worker
  int raises = 0;   // how many executions, from the first one on, end with an error of its code
  bool retries_errors = false;  // such an error is to be retried
  int max_retries = 3;          // -1: no limit
  int max_calls = 0;            // how often one process runs the function; 0: without a limit
  // How long others need what the process that ran it owns.
  int64_t needed_us = 0;
  // How long its code keeps a reference that came with an argument; 0: it keeps none.
  int64_t keeps_us = 0;
  bool exits_actor = false;  // its actor ends by its own wish half-way
  // The placement group in which it runs; nil: none. Bundle -1: any.
  GroupId group;
  int bundle = -1;
  bool captures = false;           // its child runs in its group, unless that says where it runs
  bool placed_explicitly = false;  // it says that it runs in no group
};

struct ActorPlan {
  ResourceSet placement, held;
  std::string name;
  proto::SchedulingStrategy strategy = proto::DEFAULT;
  int64_t constructor_us = 2000;
  bool constructor_raises = false;
  int64_t max_restarts = 0;  // -1: no limit
  bool detached = false;
  GroupId group;  // see TaskPlan
  int bundle = -1;
  bool captures = false;
};

struct TaskRecord {
  TaskPlan plan;
  uint64_t owner = 0;  // number of the owner's process
  ActorId actor;       // nil: not an actor call
  uint64_t order = 0;  // position among its owner's submissions
  bool late = false;   // its placement group had to go already when it was submitted
  int executions = 0;
  int incidents = 0;  // how often it was in flight when its worker was lost
  // How many of the incidents did not use up a retry, because another task was running.
  int free_passes = 0;
  int retries_used = 0;                // for other reasons than an incident
  bool error_retried = false;          // one of them was for an error of its code
  bool cancelled = false;              // by its owner, before it ended
  NodeId ran_on;                       // at last
  std::set<NodeId> refused_by;         // nodes whose stores had no room for its arguments
  std::map<uint64_t, int> running_on;  // executions in progress, by number of the worker's process
  TaskId child;                        // The one that its last execution made.
  bool ended = false;
  int error = 0;  // Code, if it failed
};

struct ActorRecord {
  ActorPlan plan;
  std::map<int64_t, uint64_t> starts;  // number of the worker's process, by epoch
  std::set<uint64_t> living;           // numbers of the worker processes in which it lives
  int deaths = 0;
  bool kill_requested = false;  // it is to die: a user killed it, or its job or owner ended
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
  // The task was in flight when its worker was lost. `charged`: this uses up a retry.
  void incident(const TaskId& id, bool charged);
  // The task goes to a process that is to execute it.
  void sent(const TaskId& id);
  // An attempt has failed, but not by an incident, and another one follows.
  void retry_used(const TaskId& id) { ++record(id).retries_used; }
  void error_retried(const TaskId& id) {
    retry_used(id);
    record(id).error_retried = true;
  }
  void cancelled(const TaskId& id) { record(id).cancelled = true; }
  // The store of the node had no room for its arguments, and it is sent elsewhere.
  void refused_room(const TaskId& id, const NodeId& node) { record(id).refused_by.insert(node); }
  void child_submitted(const TaskId& parent, const TaskId& child) { record(parent).child = child; }
  void succeeded(const TaskId& id);
  void failed(const TaskId& id, const proto::ErrorValue& error);
  void owner_ended(uint64_t owner);

  // ---- workers
  const TaskRecord& started(const TaskId& id, uint64_t worker, const NodeId& node);
  void stopped(const TaskId& id, uint64_t worker);  // finished, or its worker died
  void worker_died() { ++totals_.workers_died; }

  // ---- actors
  void actor_created(const ActorId& id, ActorPlan plan) { actors_[id].plan = std::move(plan); }
  void actor_started(const ActorId& id, int64_t epoch, uint64_t worker);
  void actor_ended(const ActorId& id, uint64_t worker);
  // The process that its node had chosen ended before it heard of the actor.
  void actor_start_lost(const ActorId& id) { ++actors_.at(id).deaths; }
  void actor_kill_requested(const ActorId& id) { actors_[id].kill_requested = true; }
  const ActorRecord& actor(const ActorId& id) const { return actors_.at(id); }

  // It is in a placement group that must go, or it is a call to an actor in one.
  bool doomed(const TaskRecord& task) const;
  GroupLedger& groups() { return groups_; }
  const GroupLedger& groups() const { return groups_; }

  // ---- faults
  // An error that only a certain kind of fault can cause is a violation before such a fault.
  void network_fault() { network_faults_ = true; }  // connections were broken
  void spawn_fault() { spawn_faults_ = true; }      // processes could not be started
  void process_fault() { process_faults_ = true; }  // processes were killed
  void daemon_fault() { daemon_faults_ = true; }    // nodes or the head were lost
  void head_given_up() { head_given_up_ = true; }   // longer than anybody waits for it

  const TaskRecord& task(const TaskId& id) const { return tasks_.at(id); }
  int64_t pending() const { return pending_; }
  // The tasks of living owners that have not ended.
  std::vector<TaskId> open() const;
  int64_t running() const { return running_; }
  const Totals& totals() const { return totals_; }
  // Describes up to `limit` pending tasks, one per line.
  std::string describe_pending(size_t limit) const;
  std::map<std::string, int> failures_by_code() const { return failures_; }

 private:
  TaskRecord& record(const TaskId& id);
  // Checks that something happened which explains the task's error.
  void check_cause(const TaskId& id, const TaskRecord& task, const proto::ErrorValue& error) const;
  void end(TaskRecord& task);

  std::unordered_map<TaskId, TaskRecord> tasks_;
  std::map<ActorId, ActorRecord> actors_;
  GroupLedger groups_;
  std::unordered_map<uint64_t, std::set<TaskId>> open_by_owner_;
  std::map<std::string, int> failures_;
  Totals totals_;
  int64_t pending_ = 0, running_ = 0;
  bool network_faults_ = false, spawn_faults_ = false, process_faults_ = false,
       daemon_faults_ = false, head_given_up_ = false;
};

// Reports a violated invariant with the seed and the last events, and aborts.
[[noreturn]] void violation(const std::string& what);

}  // namespace rt::sim
