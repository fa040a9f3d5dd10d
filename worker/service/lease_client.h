// The leases of this process on other workers, as the connections see them: what the Submitter
// wants goes to node-managers and to the workers that they lend.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/net/alarm.h"
#include "common/net/loop.h"
#include "worker/core/submitter.h"
#include "worker/service/link.h"
#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class NodeDirectory;
class PeerLinks;
class Pump;
class Submission;

class LeaseClient final : public SubmitSink {
 public:
  // All references must outlive this object.
  LeaseClient(const Options& options, const Context& context, NodeDirectory& nodes,
              PeerLinks& peers, net::Loop& loop, Submission& submission, const GroupView& groups);
  Submitter& submitter() REQUIRES(worker_mutex) { return submitter_; }
  const Submitter& submitter() const REQUIRES(worker_mutex) { return submitter_; }

  // Lets the submitter tick when it wants to. To be called after everything that may change when.
  void arm() REQUIRES(worker_mutex) { tick_.ring_by(submitter_.next_tick_us()); }
  // Returns idle leases and waits until their nodes have told the head; a node that takes longer
  // than 3 s is not waited for. Releases the lock meanwhile. Fails as Pump::await_answer() when Ray
  // is shut down or a signal ends the wait.
  Status settle(WorkerLock& lock, Pump& pump) REQUIRES(worker_mutex);
  // Asks the node of a worker that cannot be reached how the worker ended.
  void ask_exit(const proto::WorkerAddress& worker, const NodeKey& node,
                std::function<void(proto::ExitInfo)> done) REQUIRES(worker_mutex);
  // Kills the lease's worker after a while, if the task is still in flight.
  void end_worker_of(uint64_t lease_key, const TaskId& id) REQUIRES(worker_mutex);

  void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                   const std::string& what, uint64_t last_answer) override REQUIRES(worker_mutex);
  void connect_lease(const Lease& lease) override REQUIRES(worker_mutex);
  void push_task(const Lease& lease, const Task& task) override REQUIRES(worker_mutex);
  void take_back(const Lease& lease, int count) override REQUIRES(worker_mutex);
  void return_lease(const Lease& lease, bool worker_failed) override REQUIRES(worker_mutex);
  void ask_exit(const Lease& lease) override REQUIRES(worker_mutex);
  void fail_task(Task* task, const proto::ErrorValue& error) override REQUIRES(worker_mutex);
  void attempt_failed(const Task& task, const proto::ErrorValue& error) override
      REQUIRES(worker_mutex);

 private:
  void write_gpus(Link& link, const std::vector<std::string>& names) REQUIRES(worker_mutex);

  const Options& options_;
  const Context& context_;
  NodeDirectory& nodes_;
  PeerLinks& peers_;
  net::Loop& loop_;
  Submission& submission_;
  Submitter submitter_ GUARDED_BY(worker_mutex);
  net::Alarm tick_ GUARDED_BY(worker_mutex);
  // Nodes that leases were returned to since the last settle().
  std::set<NodeKey> returned_at_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
