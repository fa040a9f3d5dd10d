// The owner's half of scheduling: where normal tasks wait, which workers they are pushed to, and
// what happens when those workers die.
//
// Tasks of one scheduling class (resources, strategy, runtime env) share a queue and a set of
// leases. The demand for leases is sent to node-managers as a level ("n leases are wanted now"). A
// lease gets as much work as `pipeline_target_us` of measured durations allows, and what its
// worker has not started can be taken back for an idle lease. When a task runs for much longer
// than that, the tasks behind it are taken back, whatever was measured, because it may even wait
// for one of them; tick() is called often enough to notice.
//
// Pure: events come in through methods with the time, decisions go out through SubmitComm. Guarded
// by the worker's mutex.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/config/settings.h"
#include "worker/core/task.h"

namespace rt::worker {

// A node-manager that this owner asks for leases. Nil means the local one.
using NodeKey = NodeId;
struct Lease;

struct SchedulingClass {
  uint64_t id = 0;
  ResourceSet resources;
  proto::SchedulingStrategy strategy = proto::DEFAULT;
  std::string runtime_env;
  proto::Language language = proto::LANGUAGE_PYTHON;
  std::unique_ptr<const proto::NodeConstraint> constraint;  // Null means any node.

  std::deque<Task*> queue;  // Ready to run, not pushed.
  std::vector<Lease*> leases;
  int64_t unstarted_in_flight = 0;  // Pushed behind the first task of each lease.
  int local_want = 0;               // Demand last sent to the local node-manager.
  struct Remote {
    int want = 0;
    int64_t until_us = 0;  // Withdrawn if nothing is granted by then.
  };
  std::map<NodeKey, Remote> remotes;
};

struct Lease {
  enum class State { kConnecting, kReady, kBroken };
  uint64_t key = 0;  // Unique in this owner.
  uint64_t id = 0;   // Assigned by the node-manager.
  NodeKey node;      // The node whose node-manager granted it.
  SchedulingClass* owner_class = nullptr;
  proto::WorkerAddress worker;
  int pid = 0;
  std::vector<std::string> gpu_ids;  // GPUs assigned to its tasks.
  State state = State::kConnecting;
  std::deque<Task*> in_flight;  // In the order pushed.
  int64_t in_flight_us = 0;     // Estimated duration of all of them.
  uint32_t next_seq = 1;
  int64_t idle_since_us = 0;
  bool revoked = false;
  // The worker itself gives up the lease, because it takes no more tasks (max_calls).
  bool leaving = false;
  bool take_back_pending = false;
  // The sequence number of the first task in flight, as tick() last saw it, and since when.
  // Sampling it saves reading the clock for each task.
  uint32_t watched_seq = 0;
  int64_t watched_since_us = 0;
  // The first task in flight runs for too long, so nothing is sent behind it.
  bool overdue = false;
  void* connection = nullptr;  // Owned by the service.
};

class SubmitComm {
 public:
  virtual ~SubmitComm() = default;
  // `last_answer` is the number of the last grant or redirect that had arrived from the node when
  // this demand was decided.
  virtual void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                           const std::string& what, uint64_t last_answer) = 0;
  // Answered by lease_ready() or lease_broken().
  virtual void connect_lease(Lease& lease) = 0;
  // Queues the task on the connection, which the service flushes.
  virtual void push_task(Lease& lease, Task& task) = 0;
  // Answered by task_returned() for each task.
  virtual void take_back(Lease& lease, int count) = 0;
  virtual void return_lease(Lease& lease, bool worker_failed) = 0;
  // Answered by worker_exit() with the cause.
  virtual void ask_exit(Lease& lease) = 0;
  // Takes over the task.
  virtual void fail_task(Task* task, const proto::ErrorValue& error) = 0;
  // The attempt failed, and another one follows.
  virtual void attempt_failed(const Task& task, const proto::ErrorValue& error) = 0;
};

class Submitter {
 public:
  Submitter(SubmitComm& comm, const Settings& settings);
  ~Submitter();

  SchedulingClass* scheduling_class(const proto::TaskTemplate& spec);

  // Takes over a task whose arguments are ready, until it is handed to fail_task() or finished().
  void submit(Task* task);
  void lease_granted(const NodeKey& node, uint64_t class_id, uint64_t lease_id,
                     const proto::WorkerAddress& worker, int pid, int64_t now_us,
                     std::vector<std::string> gpu_ids = {});
  void lease_ready(uint64_t key, int64_t now_us);
  // The connection to the worker broke, or could not be made.
  void lease_broken(uint64_t key);
  void worker_exit(uint64_t key, const proto::ExitInfo& info);
  void leases_revoked(const NodeKey& node, const std::vector<uint64_t>& lease_ids);
  // The local node-manager wants `count` of the leases to be asked for at `node`. `answer` is the
  // number of its answer.
  void redirected(uint64_t class_id, const NodeKey& node, int count, uint64_t answer,
                  int64_t now_us);
  void class_failed(uint64_t class_id, const Error& why);
  // The local node-manager is gone for good. All queued tasks fail with `why`, as does every task
  // that is submitted from here on.
  void close(const Error& why);
  // The connection to the node-manager broke. The demand there is forgotten; its leases end one by
  // one as lease_broken().
  void node_gone(const NodeKey& node);

  // The task that a reply with `seq` belongs to; null when no such task is in flight on the lease,
  // which is a mistake of the peer.
  Task* reply_of(uint64_t key, uint32_t seq);
  // The reply being read is the last for this owner. finished() or retry() is called next.
  void worker_leaves(uint64_t key);
  // To be called when the caller has taken the results for `task` (see reply_of()): the lease has
  // room again.
  void finished(uint64_t key, Task* task, int64_t duration_us, int64_t now_us);
  // The attempt failed and another one follows: the task goes back to the queue of its class, which
  // the caller may have changed. It costs no retry when no code of the user ran.
  enum class Cost { kRetry, kNothing };
  void retry(uint64_t key, Task* task, Cost cost, int64_t now_us);
  // The worker returned the task unstarted.
  void task_returned(uint64_t key, Task* task, int64_t now_us);

  // Cancels a task that this process submitted and that has not ended. A queued one fails as
  // cancelled. One in flight never runs again: returns the lease whose worker must be told, or
  // null when nothing more is to be done. `unknown` is set for a task that was not submitted here
  // yet, because its arguments are not ready; it stays the caller's.
  Lease* cancel(Task* task, bool* unknown);
  Lease* find_lease(uint64_t key);

  // Returns every lease without work at once, without waiting for its idle time.
  void return_idle_leases();
  // Returns idle leases, withdraws stale redirects, and takes tasks back from behind long ones.
  // The result is when to be called next (steady clock, us), or -1 when that is not needed.
  int64_t tick(int64_t now_us);
  int64_t pending() const { return pending_; }
  bool has_leases() const { return !leases_.empty(); }
  // Whether tick() has work: leases that may become idle, or demand at other nodes that may bring
  // nothing.
  bool needs_tick() const;
  // Calls `f(task, lease)` for every task here. A null lease means that the task is queued, or
  // that its worker died and the cause is being asked for.
  template <class F>
  void for_each_task(F&& f) const {
    for (const auto& [key, c] : classes_) {
      for (const Task* task : c->queue) f(*task, static_cast<const Lease*>(nullptr));
    }
    for (const auto& [key, lease] : leases_) {
      for (const Task* task : lease->in_flight) f(*task, lease.get());
    }
    for (const auto& [key, tasks] : awaiting_exit_) {
      for (const Task* task : tasks) f(*task, static_cast<const Lease*>(nullptr));
    }
  }
  void check_invariants() const;

 private:
  struct Broken;
  void pump(SchedulingClass& c);
  void fail_queue(SchedulingClass& c, const Error& why);
  bool may_push(const Lease& lease, const Task& task) const;
  Lease* least_loaded(SchedulingClass& c, const Task& task) const;
  void push(Lease& lease, Task* task);
  void remove_in_flight(Lease& lease, Task* task);
  void update_demand(SchedulingClass& c);
  void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                   const std::string& what);
  void answered(const NodeKey& node, uint64_t answer);
  int needed_leases(const SchedulingClass& c) const;
  void rebalance(SchedulingClass& c);
  void watch(Lease& lease, int64_t now_us);
  void drop_lease(Lease& lease, bool failed);
  // Fails the task if it was cancelled.
  void requeue(Task* task, SchedulingClass& c);
  void fail_cancelled(Task* task);
  void settle(const std::vector<Task*>& tasks, const proto::ExitInfo& info);

  SubmitComm& comm_;
  const Settings& settings_;
  std::optional<Error> closed_;
  std::map<std::string, std::unique_ptr<SchedulingClass>> classes_;
  std::unordered_map<uint64_t, SchedulingClass*> class_by_id_;
  std::unordered_map<uint64_t, std::unique_ptr<Lease>> leases_;
  // The task that was running when its lease broke, by lease key.
  std::unordered_map<uint64_t, std::vector<Task*>> awaiting_exit_;
  // Kept when a connection breaks, because the numbers grow as long as the node lives.
  std::map<NodeKey, uint64_t> last_answer_;
  uint64_t next_class_ = 1, next_lease_ = 1;
  int64_t pending_ = 0;  // Queued, in flight, or waiting for the cause of a death.
};

}  // namespace rt::worker
