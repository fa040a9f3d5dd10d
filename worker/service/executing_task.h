// A task between its arrival and its reply. Made under the lock by Worker::run(), then used by the
// binding without the lock, and destroyed by the binding when it has dropped the arguments. The
// destructor sends the reply.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "worker/service/held_frames.h"
#include "worker/service/impl.h"

namespace rt::worker {

class ExecutingTaskImpl final : public ExecutingTask {
 public:
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
  int64_t took_us() const override { return executed_us_ == 0 ? -1 : executed_us_ - start_us_; }
  void finish(std::span<const ValueParts> returns) override;
  void fail(const ValueParts& error, bool retry) override;
  bool cancelled() const override { return cancelled_.load(std::memory_order_acquire); }
  bool skip_item() override;
  Status item(const ValueParts& value) override;
  Waited wait_for_room() override;

  void make_current();
  // Replies with the failure that the task arrived with, an argument that is an error.
  void fail_encoded();

  // (L) The list of running tasks, from Execution::running() on.
  ExecutingTaskImpl* next() const { return next_; }
  void unlist();
  // (L) True when user code has not started: it never will, and no reply is sent for the task.
  bool take_back() {
    Stage waiting = Stage::kWaiting;
    return stage_.compare_exchange_strong(waiting, Stage::kTakenBack);
  }
  bool has_started() const { return stage_.load() == Stage::kStarted; }
  bool taken_back() const { return stage_.load() == Stage::kTakenBack; }
  void set_cancelled() { cancelled_.store(true, std::memory_order_release); }
  // (L) For generators: the items yielded and not taken by the consumer.
  int64_t items_ahead() const {
    return std::max<int64_t>(0, static_cast<int64_t>(items_yielded_) - task_->items_taken);
  }
  void set_items_taken(uint32_t taken) { task_->items_taken = std::max(task_->items_taken, taken); }
  // Wakes the executing thread out of a wait, once, because the language's runtime has an
  // exception to raise.
  void interrupt() { interrupt_.store(true, std::memory_order_release); }
  bool take_interrupt() {
    return interrupt_.load(std::memory_order_relaxed) && interrupt_.exchange(false);
  }

  IncomingTask& incoming() { return *task_; }
  const IncomingTask& incoming() const { return *task_; }
  void drop_args() {
    task_->args.clear();
    task_->holds_arguments.reset();
  }
  bool failed() const { return failed_; }
  bool replied() const { return replied_; }
  const std::string& reply() const { return reply_; }
  // Sets the flag in the status byte, which follows the sequence number.
  void mark_leaving() {
    reply_[sizeof(uint32_t)] = static_cast<char>(reply_[sizeof(uint32_t)] | wire::kLeaving);
  }
  const std::string& error_value() const { return error_; }
  // (L) For the frame with results that goes to their owner now. The store hears that those which
  // it has are reported. If this process ends before, or the owner has gone, it drops them.
  HeldFrames::Lent take_lent();
  int64_t start_us() const { return start_us_; }
  int64_t started_us() const { return started_us_; }
  int64_t executed_us() const { return executed_us_; }
  int64_t finished_us() const { return finished_us_; }

 private:
  void begin_reply(wire::TaskStatus status, size_t count, int64_t finished_us);
  void append_return(Worker::Impl::Lock& lock, std::string& out, const ValueParts& parts,
                     uint32_t index);
  bool has_room() const;
  void hold_for_receiver(std::span<const Ref> contained);

  Worker::Impl& impl_;
  std::shared_ptr<IncomingTask> task_;
  std::string reply_, error_;
  HeldFrames::Lent lent_;
  std::vector<std::pair<ObjectId, Keepalive>> stored_;  // see take_lent()
  bool failed_ = false, replied_ = false;
  uint32_t items_yielded_ = 0;
  enum class Stage : uint8_t { kWaiting, kStarted, kTakenBack };
  std::atomic<Stage> stage_{Stage::kWaiting};
  std::atomic<bool> cancelled_{false}, interrupt_{false};
  ExecutingTaskImpl *next_ = nullptr, *previous_ = nullptr;
  // Wall clock. Reading it is a considerable part of the cost of a small task, so times are reused
  // where possible.
  int64_t start_us_ = 0, started_us_ = 0, executed_us_ = 0, finished_us_ = 0;
  // Neither the function nor arguments must be loaded, and the task need not wait for a turn, so
  // it starts in the moment it arrives.
  bool loaded_ = false;
};

}  // namespace rt::worker
