// Where normal tasks wait, which workers they are pushed to, and what happens when those die: the
// owner's half of scheduling.
//
// Tasks of one scheduling class (resources, strategy, runtime env) share a queue and a set of
// leases. Demand for leases goes to node-managers as a level. A lease gets as much work as
// `pipeline_target_us` of measured duration allows; what it has not started can be taken back for
// an idle one. A task that runs for much longer than that, whatever was measured, has nobody wait
// behind it: what does is taken back (it may be what that task waits for), and tick() is called
// often enough to see it.
//
// Pure: events in through methods with the time, decisions out through SubmitComm. Guarded by the
// worker's mutex.
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

// One node-manager this owner has asked for leases. Empty id: the local one.
using NodeKey = NodeId;
struct Lease;

struct SchedulingClass {
  uint64_t id = 0;
  ResourceSet resources;
  std::string strategy, runtime_env;
  proto::Language language = proto::LANGUAGE_PYTHON;
  std::unique_ptr<const proto::NodeConstraint> constraint;  // null: any node

  std::deque<Task*> queue;  // ready to run, not pushed
  std::vector<Lease*> leases;
  int64_t unstarted_in_flight = 0;  // pushed beyond the first of each lease
  int local_want = 0;               // demand last sent to the local node-manager
  struct Remote {
    int want = 0;
    int64_t until_us = 0;  // withdrawn if nothing is granted by then
  };
  std::map<NodeKey, Remote> remotes;
};

struct Lease {
  enum class State { kConnecting, kReady, kBroken };
  uint64_t key = 0;  // ours, unique
  uint64_t id = 0;   // the node-manager's
  NodeKey node;      // whose node-manager granted it
  SchedulingClass* owner_class = nullptr;
  proto::WorkerAddress worker;
  int pid = 0;
  std::vector<std::string> gpu_ids;  // of its tasks
  State state = State::kConnecting;
  std::deque<Task*> in_flight;  // in the order pushed
  int64_t in_flight_us = 0;     // estimated
  uint32_t next_seq = 1;
  int64_t idle_since_us = 0;
  bool revoked = false;
  bool leaving = false;  // revoked by its worker, which ends (max_calls)
  bool take_back_pending = false;
  uint32_t watched_seq = 0;  // the first in flight when tick() looked, since then: seen from time
                             // to time, reading no clock per task
  int64_t watched_since_us = 0;
  bool overdue = false;        // the first in flight runs for too long: nothing is sent behind it
  void* connection = nullptr;  // the service's
};

class SubmitComm {
 public:
  virtual ~SubmitComm() = default;
  // `last_answer`: number of the last grant or redirect that had come from the node when this was
  // decided.
  virtual void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                           const std::string& what, uint64_t last_answer) = 0;
  virtual void connect_lease(Lease& lease) = 0;  // answered by lease_ready() or lease_broken()
  virtual void push_task(Lease& lease,
                         Task& task) = 0;  // queued on the connection; flushed by the service
  virtual void take_back(Lease& lease, int count) = 0;  // answered by task_returned() for each
  virtual void return_lease(Lease& lease, bool worker_failed) = 0;
  virtual void ask_exit(Lease& lease) = 0;  // answered by worker_exit() with the cause
  virtual void fail_task(Task* task, const proto::ErrorValue& error) = 0;  // takes the task
  virtual void attempt_failed(const Task& task,
                              const proto::ErrorValue& error) = 0;  // and there will be another one
};

class Submitter {
 public:
  Submitter(SubmitComm& comm, const Settings& settings);
  ~Submitter();

  SchedulingClass* scheduling_class(const proto::TaskTemplate& spec);

  // A task whose arguments are ready. Takes it until it is handed to fail_task() or finished().
  void submit(Task* task, int64_t now_us);
  void lease_granted(const NodeKey& node, uint64_t class_id, uint64_t lease_id,
                     const proto::WorkerAddress& worker, int pid, int64_t now_us,
                     std::vector<std::string> gpu_ids = {});
  void lease_ready(uint64_t key, int64_t now_us);
  // The connection to the worker could not be made or broke.
  void lease_broken(uint64_t key, int64_t now_us);
  void worker_exit(uint64_t key, const proto::ExitInfo& info, int64_t now_us);
  void leases_revoked(const NodeKey& node, const std::vector<uint64_t>& lease_ids, int64_t now_us);
  // By the local node-manager, its answer number `answer`.
  void redirected(uint64_t class_id, const NodeKey& node, int count, uint64_t answer,
                  int64_t now_us);
  void class_failed(uint64_t class_id, const Error& why, int64_t now_us);
  // The local node-manager is gone for good: what is queued fails with this, and whatever is
  // submitted from now on.
  void close(const Error& why, int64_t now_us);
  // The node-manager's connection broke: its leases end as lease_broken() one by one; its demand is
  // forgotten.
  void node_gone(const NodeKey& node, int64_t now_us);

  // A reply: the task of `seq` in flight on the lease, or null for one that is not there (a peer's
  // mistake).
  Task* reply_of(uint64_t key, uint32_t seq);
  // The reply being read is the worker's last: finished() or retry() come next.
  void worker_leaves(uint64_t key);
  // After the caller took the results out of `task` (reply_of): the lease has room again.
  void finished(uint64_t key, Task* task, int64_t duration_us, int64_t now_us);
  void retry(uint64_t key, Task* task,
             int64_t now_us);  // user exception, retries left: back into the queue
  void task_returned(uint64_t key, Task* task, int64_t now_us);  // the worker had not started it

  // A task that this process submitted and that has not ended. Queued: it fails as cancelled. In
  // flight: it never runs again, and the lease is returned whose worker is to be told; null when
  // nothing more is to be done. `unknown` is set for a task that has not been submitted here yet
  // (its arguments are not ready): it stays the caller's.
  Lease* cancel(Task* task, bool* unknown, int64_t now_us);
  Lease* find_lease(uint64_t key);

  // Returns every lease without work now, not after its idle time.
  void return_idle_leases();
  // Returns idle leases, withdraws stale redirects. Returns when to be called next (steady us), -1:
  // not needed.
  int64_t tick(int64_t now_us);
  int64_t pending() const { return pending_; }
  bool has_leases() const { return !leases_.empty(); }
  // Whether tick() has something to look after: leases that become idle, or demand at other nodes
  // that may bring nothing.
  bool needs_tick() const;
  // `f(task, lease)` for every task here; lease null: it is queued, or its worker died and the
  // cause is asked for.
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
  void pump(SchedulingClass& c, int64_t now_us);
  void fail_queue(SchedulingClass& c, const Error& why);
  bool may_push(const Lease& lease, const Task& task) const;
  Lease* least_loaded(SchedulingClass& c, const Task& task) const;
  void push(Lease& lease, Task* task);
  void remove_in_flight(Lease& lease, Task* task);
  void update_demand(SchedulingClass& c, int64_t now_us);
  void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                   const std::string& what);
  void answered(const NodeKey& node, uint64_t answer);
  int needed_leases(const SchedulingClass& c) const;
  void rebalance(SchedulingClass& c);
  void watch(Lease& lease, int64_t now_us);
  void drop_lease(Lease& lease, bool failed);
  void requeue(Task* task, SchedulingClass& c);  // fails it when it was cancelled meanwhile
  void fail_cancelled(Task* task);
  void settle(std::vector<Task*> tasks, const proto::ExitInfo& info, int64_t now_us);

  SubmitComm& comm_;
  const Settings& settings_;
  std::optional<Error> closed_;
  std::map<std::string, std::unique_ptr<SchedulingClass>> classes_;
  std::unordered_map<uint64_t, SchedulingClass*> class_by_id_;
  std::unordered_map<uint64_t, std::unique_ptr<Lease>> leases_;
  std::unordered_map<uint64_t, std::vector<Task*>>
      awaiting_exit_;  // by lease key: in flight when it broke
  std::map<NodeKey, uint64_t>
      last_answer_;  // kept when a connection breaks: numbers grow as long as the node lives
  uint64_t next_class_ = 1, next_lease_ = 1;
  int64_t pending_ = 0;  // queued, in flight or awaiting a cause
};

}  // namespace rt::worker
