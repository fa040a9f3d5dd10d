// The decisions of Submitter, for the service, a test or the simulator to carry out.
//
// Unlike those of a daemon, three of them may call back before they return: connect_lease() and
// ask_exit(), where the answer is known at once, and fail_task(), because the error may be what
// other tasks wait for. The submitter calls each of them when its records say what is so.
#pragma once

#include <cstdint>
#include <string>

#include "common/proto/common.pb.h"
#include "worker/core/scheduling_class.h"

namespace rt::worker {

class SubmitSink {
 public:
  virtual ~SubmitSink() = default;
  // `last_answer` is the number of the last grant or redirect that had arrived from the node when
  // this demand was decided.
  virtual void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                           const std::string& what, uint64_t last_answer) = 0;
  // Answered by lease_ready() or lease_broken().
  virtual void connect_lease(const Lease& lease) = 0;
  // Queues the task on the connection, which the service flushes.
  virtual void push_task(const Lease& lease, const Task& task) = 0;
  // Answered by task_returned() for each task.
  virtual void take_back(const Lease& lease, int count) = 0;
  virtual void return_lease(const Lease& lease, bool worker_failed) = 0;
  // Answered by worker_exit() with the cause.
  virtual void ask_exit(const Lease& lease) = 0;
  // The task has ended; the submitter does not know it any more.
  virtual void fail_task(Task* task, const proto::ErrorValue& error) = 0;
  // The attempt failed, and another one follows.
  virtual void attempt_failed(const Task& task, const proto::ErrorValue& error) = 0;
};

}  // namespace rt::worker
