// The leases of this process on other workers, as the connections see them: what the Submitter
// wants goes to node-managers and to the workers that they lend.
//
// All methods are called with the worker's mutex held, except settle(), which takes it.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "worker/core/submitter.h"
#include "worker/service/link.h"
#include "worker/worker.h"

namespace rt::worker {

class Leases final : public SubmitComm {
 public:
  // `impl` must outlive this object.
  explicit Leases(Worker::Impl& impl);
  Submitter& submitter() { return submitter_; }
  const Submitter& submitter() const { return submitter_; }

  // Returns idle leases and waits until their nodes have told the head.
  void settle();
  // Asks the node of a worker that cannot be reached how the worker ended.
  void ask_exit(const proto::WorkerAddress& worker, const NodeKey& node,
                std::function<void(proto::ExitInfo)> done);
  // Kills the lease's worker after a while, if the task is still in flight.
  void end_worker_of(uint64_t lease_key, const TaskId& id);

  void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                   const std::string& what, uint64_t last_answer) override;
  void connect_lease(Lease& lease) override;
  void push_task(Lease& lease, Task& task) override;
  void take_back(Lease& lease, int count) override;
  void return_lease(Lease& lease, bool worker_failed) override;
  void ask_exit(Lease& lease) override;
  void fail_task(Task* task, const proto::ErrorValue& error) override;
  void attempt_failed(const Task& task, const proto::ErrorValue& error) override;

 private:
  void write_gpus(Link& link, const std::vector<std::string>& names);

  Worker::Impl& impl_;
  Submitter submitter_;
  // Nodes that leases were returned to since the last settle().
  std::set<NodeKey> returned_at_;
};

}  // namespace rt::worker
