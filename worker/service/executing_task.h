// A task between its arrival and its reply. Made under the lock by Execution::run(), then used by
// the binding without the lock, and destroyed by the binding when it has dropped the arguments. The
// destructor sends the reply.
#pragma once

#include <algorithm>
#include <utility>

#include "worker/service/execution.h"
#include "worker/service/held_frames.h"
#include "worker/service/incoming_task.h"
#include "worker/service/lock.h"
#include "worker/service/shared.h"
#include "worker/service/task_progress.h"
#include "worker/service/task_reply.h"
#include "worker/worker.h"

namespace rt::worker {

class Objects;
class Pump;

class ExecutingTaskImpl final : public ExecutingTask {
 public:
  // Wall clock; 0: not yet. Reading it is a considerable part of the cost of a small task, so times
  // are reused where possible.
  struct Times {
    int64_t start_us = 0;     // It was handed to the executor.
    int64_t started_us = 0;   // Its code begins: function and arguments are loaded.
    int64_t executed_us = 0;  // Its code has ended.
    int64_t finished_us = 0;  // Its results are stored.
  };

  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Pump& pump;
    Objects& objects;
    Execution& execution;
  };
  // `start_us` is the current time by the wall clock.
  ExecutingTaskImpl(const Parts& parts, std::shared_ptr<IncomingTask> task, int64_t start_us);
  ~ExecutingTaskImpl() override;

  const TaskId& id() const override { return task_->id; }
  const proto::TaskTemplate& spec() const override { return task_->function->spec; }
  std::unique_ptr<LoadedFunction>& loaded_function() override { return task_->function->loaded; }
  int attempt() const override { return task_->attempt; }
  int num_returns() const override { return task_->function->spec.num_returns(); }
  std::vector<Value>& args() override { return task_->args; }
  bool is_actor_creation() const override { return !task_->link; }
  const proto::ActorSpec* actor_spec() const override { return parts_.execution.actor_spec(); }
  int64_t actor_restarts() const override {
    return parts_.execution.actor() ? parts_.execution.actor()->num_restarts() : 0;
  }
  std::vector<std::string> gpu_ids() const override;
  const proto::JobConfig& job_config() const override;
  bool started() override;
  void executed() override;
  int64_t took_us() const override {
    return times_.executed_us == 0 ? -1 : times_.executed_us - times_.start_us;
  }
  void finish(std::span<const ValueParts> returns) override;
  void fail(const ValueParts& error, bool retry) override;
  bool cancelled() const override { return progress_.cancelled(); }
  bool skip_item() override;
  Status item(const ValueParts& value) override;
  Waited wait_for_room() override;

  void make_current();
  // Replies with the failure that the task arrived with, an argument that is an error.
  void fail_encoded();

  // The list of running tasks, from Execution::running() on.
  ExecutingTaskImpl* next() const REQUIRES(worker_mutex) { return next_; }
  void unlist() REQUIRES(worker_mutex);
  // For generators: the items yielded and not taken by the consumer.
  int64_t items_ahead() const REQUIRES(worker_mutex) {
    return std::max<int64_t>(0, static_cast<int64_t>(items_yielded_) - task_->items_taken);
  }
  void set_items_taken(uint32_t taken) REQUIRES(worker_mutex) {
    task_->items_taken = std::max(task_->items_taken, taken);
  }
  TaskProgress& progress() { return progress_; }
  IncomingTask& incoming() const { return *task_; }
  void drop_args() {
    task_->args.clear();
    task_->holds_arguments.reset();
  }
  TaskReply& reply() { return reply_; }
  const TaskReply& reply() const { return reply_; }
  // For the frame with results that goes to their owner now. The store hears that those which
  // it has are reported. If this process ends before, or the owner has gone, it drops them.
  HeldFrames::Lent take_lent() REQUIRES(worker_mutex);
  const Times& times() const { return times_; }

 private:
  void begin_reply(wire::TaskStatus status, size_t count, int64_t finished_us);
  // Appends a value to a frame, or to the store if it is too large for the frame.
  void append_return(WorkerLock& lock, std::string& out, const ValueParts& parts, uint32_t index)
      REQUIRES(worker_mutex);
  bool has_room() const REQUIRES(worker_mutex);
  void hold_for_receiver(std::span<const Ref> contained) REQUIRES(worker_mutex);

  const Parts parts_;
  std::shared_ptr<IncomingTask> task_;
  TaskReply reply_;
  TaskProgress progress_;
  HeldFrames::Lent lent_ GUARDED_BY(worker_mutex);
  // See take_lent().
  std::vector<std::pair<ObjectId, Keepalive>> stored_ GUARDED_BY(worker_mutex);
  // Only the executing thread changes it, with the mutex, and it alone reads it without.
  uint32_t items_yielded_ = 0;
  ExecutingTaskImpl* next_ GUARDED_BY(worker_mutex) = nullptr;
  ExecutingTaskImpl* previous_ GUARDED_BY(worker_mutex) = nullptr;
  Times times_;
  // Neither the function nor arguments must be loaded, and the task need not wait for a turn, so
  // it starts in the moment it arrives.
  bool loaded_ = false;
};

}  // namespace rt::worker
