// A task between its arrival and its reply. Made under the lock by Worker::run(), then used by the
// binding without the lock, and destroyed by the binding when it has dropped the arguments. The
// destructor sends the reply.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "worker/service/held_frames.h"
#include "worker/service/impl.h"
#include "worker/service/task_progress.h"
#include "worker/service/task_reply.h"

namespace rt::worker {

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

  // `start_us` is the current time by the wall clock.
  ExecutingTaskImpl(Worker::Impl& impl, std::shared_ptr<IncomingTask> task, int64_t start_us);
  ~ExecutingTaskImpl() override;

  const TaskId& id() const override { return task_->id; }
  const proto::TaskTemplate& spec() const override { return task_->function->spec; }
  void*& language_slot() override { return task_->function->language_slot; }
  int attempt() const override { return task_->attempt; }
  int num_returns() const override { return task_->function->spec.num_returns(); }
  std::vector<Value>& args() override { return task_->args; }
  bool is_actor_creation() const override { return !task_->link; }
  const proto::ActorSpec* actor_spec() const override { return impl_.execution.actor_spec(); }
  int64_t actor_restarts() const override {
    return impl_.execution.actor() ? impl_.execution.actor()->num_restarts() : 0;
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

  // (L) The list of running tasks, from Execution::running() on.
  ExecutingTaskImpl* next() const { return next_; }
  void unlist();
  // (L) For generators: the items yielded and not taken by the consumer.
  int64_t items_ahead() const {
    return std::max<int64_t>(0, static_cast<int64_t>(items_yielded_) - task_->items_taken);
  }
  void set_items_taken(uint32_t taken) { task_->items_taken = std::max(task_->items_taken, taken); }
  TaskProgress& progress() { return progress_; }
  IncomingTask& incoming() const { return *task_; }
  void drop_args() {
    task_->args.clear();
    task_->holds_arguments.reset();
  }
  TaskReply& reply() { return reply_; }
  const TaskReply& reply() const { return reply_; }
  // (L) For the frame with results that goes to their owner now. The store hears that those which
  // it has are reported. If this process ends before, or the owner has gone, it drops them.
  HeldFrames::Lent take_lent();
  const Times& times() const { return times_; }

 private:
  void begin_reply(wire::TaskStatus status, size_t count, int64_t finished_us);
  void append_return(Worker::Impl::Lock& lock, std::string& out, const ValueParts& parts,
                     uint32_t index);
  bool has_room() const;
  void hold_for_receiver(std::span<const Ref> contained);

  Worker::Impl& impl_;
  std::shared_ptr<IncomingTask> task_;
  TaskReply reply_;
  TaskProgress progress_;
  HeldFrames::Lent lent_;
  std::vector<std::pair<ObjectId, Keepalive>> stored_;  // see take_lent()
  uint32_t items_yielded_ = 0;
  ExecutingTaskImpl *next_ = nullptr, *previous_ = nullptr;
  Times times_;
  // Neither the function nor arguments must be loaded, and the task need not wait for a turn, so
  // it starts in the moment it arrives.
  bool loaded_ = false;
};

}  // namespace rt::worker
