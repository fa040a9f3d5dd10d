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
// Tasks in a placement group have classes of their own, whose demand goes straight to the nodes of
// its bundles (core/group_demand.h) and is never redirected.
//
// Guarded by the worker's mutex.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/config/settings.h"
#include "worker/core/group_view.h"
#include "worker/core/scheduling_class.h"
#include "worker/core/submit_sink.h"
#include "worker/core/task.h"

namespace rt::worker {

class Submitter {
 public:
  // `groups` outlives this object; null: the bundles of all groups are unknown.
  Submitter(SubmitSink& sink, const Settings& settings, const GroupView* groups = nullptr);

  // The class of such tasks. It has one user more from here on, until release().
  SchedulingClass* scheduling_class(const proto::TaskTemplate& spec);
  // A user of the class has ended, and so have all of its tasks. The class of a placement group is
  // freed with its last user; its leases go back. Others are kept.
  void release(SchedulingClass* c);
  // The view of the group has changed: the demand of its tasks moves. When it was removed, those
  // that do not run fail. Tasks that are submitted or retried after the removal stay pending.
  void group_moved(const GroupId& id);

  // A task whose arguments are ready. It is pending here until it comes to fail_task() or
  // finished(), and exists at least as long (TaskPool).
  void submit(Task* task);
  void lease_granted(const NodeKey& node, uint64_t class_id, uint64_t lease_id,
                     const proto::WorkerAddress& worker, int pid, Now now,
                     std::vector<std::string> gpu_ids = {});
  // `channel` lives until lease_broken(), or until the lease is returned.
  void lease_ready(uint64_t key, TaskChannel& channel, Now now);
  // The connection to the worker broke, or could not be made.
  void lease_broken(uint64_t key);
  void worker_exit(uint64_t key, const proto::ExitInfo& info);
  void leases_revoked(const NodeKey& node, const std::vector<uint64_t>& lease_ids);
  // The node-manager of `from` wants `count` of the leases to be asked for at `node`; that of
  // another node does so when it leaves the cluster, and may name the local one (nil). `answer` is
  // the number of its answer.
  void redirected(const NodeKey& from, uint64_t class_id, const NodeKey& node, int count,
                  uint64_t answer, Now now);
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
  void finished(uint64_t key, Task* task, int64_t duration_us, SteadyNow now);
  // The attempt failed and another one follows: the task goes back to the queue of its class, which
  // the caller may have changed. It costs no retry when no code of the user ran.
  enum class Cost { kRetry, kNothing };
  void retry(uint64_t key, Task* task, Cost cost, SteadyNow now);
  // The worker returned the task unstarted.
  void task_returned(uint64_t key, Task* task, SteadyNow now);

  struct Cancelled {
    // False: its arguments are not ready, so that it was not submitted here yet. It stays the
    // caller's.
    bool submitted = true;
    // The task is in flight: the worker of this lease must be told. Else null.
    const Lease* lease = nullptr;
  };
  // Cancels a task that this process made and that has not ended. A queued one fails as cancelled.
  // One in flight never runs again.
  Cancelled cancel(Task* task);

  // Returns every lease without work at once, without waiting for its idle time.
  void return_idle_leases();
  // Returns idle leases, withdraws stale redirects, and takes tasks back from behind long ones.
  void tick(Now now);
  // -1 when there are neither leases, which may become idle, nor demand at other nodes, which may
  // bring nothing.
  int64_t next_tick_us() const { return next_tick_us_; }

  const Lease* find_lease(uint64_t key) const;
  int64_t pending() const { return pending_; }
  bool has_leases() const { return !leases_.empty(); }
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
  Lease* lease_of(uint64_t key);
  void pump(SchedulingClass& c);
  // Fails all tasks in the queue of the class with `why`; nullopt stands for the error that the
  // placement group of the class was removed, whose text differs from task to task.
  void fail_queue(SchedulingClass& c, const std::optional<Error>& why);
  void push(Lease& lease, Task* task);
  void remove_in_flight(Lease& lease, Task* task);
  void update_demand(SchedulingClass& c);
  void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                   const std::string& what);
  void rebalance(SchedulingClass& c);
  void drop_lease(Lease& lease, bool failed);
  // Fails the task if it was cancelled.
  // An attempt that was not started fails instead if its placement group was removed.
  void requeue(Task* task, SchedulingClass& c, bool started);
  void fail_cancelled(Task* task);
  void settle(const std::vector<Task*>& tasks, const proto::ExitInfo& info);

  SubmitSink& sink_;
  const Settings& settings_;
  const GroupView* const groups_;
  std::optional<Error> closed_;
  std::map<std::string, std::unique_ptr<SchedulingClass>> classes_;
  std::unordered_map<uint64_t, SchedulingClass*> class_by_id_;
  std::unordered_map<GroupId, std::vector<SchedulingClass*>> classes_of_group_;
  std::unordered_map<uint64_t, std::unique_ptr<Lease>> leases_;
  // The task that was running when its lease broke, by lease key.
  std::unordered_map<uint64_t, std::vector<Task*>> awaiting_exit_;
  // Kept when a connection breaks, because the numbers grow as long as the node lives.
  std::map<NodeKey, uint64_t> last_answer_;
  uint64_t next_class_ = 1, next_lease_ = 1;
  int64_t next_tick_us_ = -1;
  int64_t pending_ = 0;  // Queued, in flight, or waiting for the cause of a death.
};

}  // namespace rt::worker
