// The executing half of a worker: hands the tasks of the queue to the executor, one after the other
// in the thread that calls run(), and answers their owners. Knows the actor that this process is.
//
// All methods are called with the worker's mutex held, except run(), flush_before_exit() and
// actor(), which does not change once a task of the actor has been handed over.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/proto/node_manager.pb.h"
#include "worker/service/departure.h"
#include "worker/service/held_frames.h"
#include "worker/service/link.h"
#include "worker/service/task_queue.h"
#include "worker/worker.h"

namespace rt::worker {

class ExecutingTaskImpl;

class Execution {
 public:
  using CreationReply = std::function<void(const proto::CreateActorReply&)>;

  // `impl` must outlive this object.
  explicit Execution(Worker::Impl& impl);

  Departure& departure() { return departure_; }
  const Departure& departure() const { return departure_; }
  TaskQueue& queue() { return queue_; }
  // To the owners of tasks.
  HeldFrames& frames() { return frames_; }

  int run(Executor& executor);
  // Sends the replies of finished tasks, because the process ends without run() returning.
  void flush_before_exit(bool in_signal_handler);

  // Makes this process an actor, now or as soon as it is ready for that, which connected() says.
  void start_actor(const proto::CreateActorRequest& request, CreationReply reply);
  void connected();
  // Null when this process is no actor.
  const proto::CreateActorRequest* actor() const { return actor_.get(); }
  const proto::ActorSpec* actor_spec() const { return actor_ ? &actor_->spec() : nullptr; }
  // Whether this process is an actor that runs one call at a time, each caller's in their order.
  bool is_plain_actor() const { return actor_ && !actor_->spec().out_of_order(); }

  // Whether a task was handed to the executor and has not been answered.
  bool is_busy() const { return executing_ > 0; }
  // Interrupts the tasks that run. False if there are any that cannot be interrupted.
  bool end_running() { return executing_ == 0 || executor_->end_running(); }
  // The tasks that were handed to the executor and are not answered: a list.
  ExecutingTaskImpl* running() const { return running_; }
  void set_running(ExecutingTaskImpl* first) { running_ = first; }

  void on_cancel(const std::shared_ptr<Link>& link, Bytes body);
  // Refuses all calls that have not started, because the actor leaves by itself.
  void refuse_waiting_calls(const std::string& why);
  // The task is over. The reply leaves when the owners know of every borrow that it ends or begins.
  void send_reply(ExecutingTaskImpl& task);

  // Generators: the owner has taken items, and an item was added to the frame of its owner.
  void on_items_taken(const std::shared_ptr<Link>& link, Bytes body);
  void flush_items(Link& link);
  // The sum over all generators that run in this process.
  int64_t items_ahead() const;

  // A thread that executes a task begins or ends to wait for other tasks, which get its CPU.
  void set_blocked(bool blocked);
  bool is_blocked() const { return reported_blocked_; }

 private:
  // Ends the process when the actor has no group of this name.
  void require_group(const std::string& name) const;
  // Whether the call reached max_calls, so that this process takes no more and ends once nobody
  // needs it.
  bool was_last_call(ExecTemplate& function) const;
  // Answers the creation of the actor.
  void send_creation_reply(ExecutingTaskImpl& task);

  Worker::Impl& impl_;
  Departure departure_;
  TaskQueue queue_;
  HeldFrames frames_;
  Executor* executor_ = nullptr;
  pid_t pid_ = 0;  // The process that called run().
  int executing_ = 0;
  ExecutingTaskImpl* running_ = nullptr;
  int64_t last_flush_us_ = 0, last_item_flush_us_ = 0;
  bool item_timer_set_ = false;
  std::unique_ptr<proto::CreateActorRequest> actor_;
  // The start of an actor that arrived before this process was ready for it.
  std::function<void()> early_start_;
  CreationReply actor_reply_;
  bool reported_blocked_ = false;
  int blocked_threads_ = 0;
};

}  // namespace rt::worker
