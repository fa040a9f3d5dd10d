// The executing half of a worker: hands the tasks of the queue to the executor, one after the other
// in the thread that calls run(), and answers their owners. Knows the actor that this process is.
//
// Without the mutex run: what says EXCLUDES, which takes it; and actor() and actor_spec(), which
// tell the same from the moment on in which a task of the actor has been handed over, so that the
// code of such a task may ask at any time.
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
#include "worker/service/lock.h"
#include "worker/service/shared.h"
#include "worker/service/task_queue.h"
#include "worker/worker.h"

namespace rt::worker {

class Cancellation;
class ExecutingTaskImpl;
class Groups;
class LeaseClient;
class NodeDirectory;
class Objects;
class PeerLinks;
class Pump;
class Recorder;
class WaitingReport;

class Execution {
 public:
  using CreationReply = std::function<void(const proto::CreateActorReply&)>;

  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Pump& pump;
    NodeDirectory& nodes;
    PeerLinks& peers;
    Objects& objects;
    Groups& groups;
    Cancellation& cancellation;
    WaitingReport& waiting;
    LeaseClient& leases;
    Recorder& recorder;
  };
  struct Hooks {
    // A pool worker belongs to the job of the first task that it gets.
    TaskQueue::AdoptJob adopt_job;
    // Whether others need this process even though it has nothing to execute.
    std::function<bool()> is_needed;
  };
  Execution(const Parts& parts, Hooks hooks);

  Departure& departure() { return departure_; }
  TaskQueue& queue() { return queue_; }
  // The frames that wait to be sent to the owners of tasks.
  HeldFrames& frames() { return frames_; }

  int run(Executor& executor) EXCLUDES(worker_mutex);
  // Sends the replies of finished tasks, because the process ends without run() returning.
  // Any thread may call it, also one that a fault has interrupted while it holds the mutex.
  void flush_before_exit(bool in_signal_handler);

  // Makes this process an actor, now or as soon as it is ready for that, which connected() says.
  void start_actor(const proto::CreateActorRequest& request, CreationReply reply)
      REQUIRES(worker_mutex);
  void connected() REQUIRES(worker_mutex);
  // Null when this process is no actor.
  const proto::CreateActorRequest* actor() const { return actor_.get(); }
  const proto::ActorSpec* actor_spec() const { return actor_ ? &actor_->spec() : nullptr; }
  // The calls of a concurrent actor that have been handed to the executor for so long and have not
  // started.
  int64_t waiting_for_turn(int64_t for_us) const REQUIRES(worker_mutex);

  // Sends what is recorded and answered, and ends the process at once.
  [[noreturn]] void end_process(int code) REQUIRES(worker_mutex);
  // Interrupts the tasks that run. False if there are any that cannot be interrupted.
  bool end_running() REQUIRES(worker_mutex) {
    return queue_.line().running() == 0 || executor_->end_running();
  }
  // The tasks that were handed to the executor and are not answered: a list.
  ExecutingTaskImpl* running() const REQUIRES(worker_mutex) { return running_; }
  void set_running(ExecutingTaskImpl* first) REQUIRES(worker_mutex) { running_ = first; }

  void on_cancel(const std::shared_ptr<Link>& link, Bytes body) REQUIRES(worker_mutex);
  // The task is over. The reply leaves when the owners know of every borrow that it ends or begins.
  void send_reply(ExecutingTaskImpl& task) REQUIRES(worker_mutex);

  // Generators: the owner has taken items, and an item was added to the frame of its owner.
  void on_items_taken(const std::shared_ptr<Link>& link, Bytes body) REQUIRES(worker_mutex);
  void flush_items(Link& link) REQUIRES(worker_mutex);
  // The sum over all generators that run in this process.
  int64_t items_ahead() const REQUIRES(worker_mutex);

  // A thread that executes a task begins or ends to wait for other tasks, which get its CPU.
  void set_blocked(bool blocked) REQUIRES(worker_mutex);
  // Tells the store and the node-manager that this process waits, or works again.
  void tell_blocked(bool blocked) REQUIRES(worker_mutex);

 private:
  Departure::Hooks departure_hooks();
  // Repeats the interrupt of a cancelled task until the task has noticed it.
  void interrupt_again_after(int64_t pause_us, const TaskId& id) REQUIRES(worker_mutex);
  // Sends what is recorded and answered.
  void flush() REQUIRES(worker_mutex);
  // Tell the node-manager that this process ends, and ask it to end this actor because of `why`.
  void tell_leaving() REQUIRES(worker_mutex);
  void ask_to_end(const std::string& why) REQUIRES(worker_mutex);
  // The actor leaves by itself: the calls that wait for their turn in the executor do not start
  // either.
  void refuse_with(const std::string& why) REQUIRES(worker_mutex);
  // Ends the process when the actor has no group of this name.
  void require_group(const std::string& name) const REQUIRES(worker_mutex);
  // Answers the creation of the actor.
  void send_creation_reply(ExecutingTaskImpl& task) REQUIRES(worker_mutex);

  const Parts parts_;
  const Hooks hooks_;
  TaskQueue queue_;
  Departure departure_;
  HeldFrames frames_;
  Executor* executor_ GUARDED_BY(worker_mutex) = nullptr;
  pid_t pid_ = 0;  // The process that called run().
  ExecutingTaskImpl* running_ GUARDED_BY(worker_mutex) = nullptr;
  int64_t last_flush_us_ GUARDED_BY(worker_mutex) = 0;
  int64_t last_item_flush_us_ GUARDED_BY(worker_mutex) = 0;
  bool item_timer_set_ GUARDED_BY(worker_mutex) = false;
  std::unique_ptr<proto::CreateActorRequest> actor_;
  // The start of an actor that arrived before this process was ready for it.
  std::function<void()> early_start_ GUARDED_BY(worker_mutex);
  CreationReply actor_reply_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
