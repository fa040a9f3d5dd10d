// Runs tasks in a worker process.
//
// Plain workers and plain actors execute in the thread that called Worker::run(), in order. The
// calls of a threaded actor go to a pool of Python threads, those of an asyncio actor to its
// event-loop threads; both go through a queue that is filled without the GIL.
//
// Lifecycle: one per process, made by run_worker(), lives until the process ends. GIL: execute()
// takes it to run Python. The reply leaves, by the destruction of the task, after the Python
// arguments are gone and the GIL is released.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "python/binding/function_slot.h"
#include "python/binding/interrupt.h"
#include "python/binding/log_markers.h"
#include "python/binding/process_title.h"
#include "python/binding/py.h"
#include "worker/core/call_groups.h"
#include "worker/worker.h"

namespace rt::python {

// The value of an encoded proto::ErrorValue. Points into `encoded`.
worker::ValueParts error_parts(const std::string& encoded);

// Where the calls of threaded and asyncio actors wait for their turn (worker/core/call_groups.h).
// Its length is bounded by the callers' actor_max_in_flight. The threads of a pool serve all
// groups. Each group of an asyncio actor has an event loop of its own, so that a group that blocks
// its loop stops no other. Any thread may call; no method needs the GIL.
class CallQueue {
 public:
  using Groups = worker::CallGroups<std::unique_ptr<worker::ExecutingTask>>;
  using Started = Groups::Started;  // Ends with done() or the next wait_one().

  CallQueue() = default;
  ~CallQueue();
  void configure(const proto::ActorSpec& spec);
  int capacity() const;
  // The names of the groups, by number.
  std::vector<std::string> groups() const;
  // Adds a call. False: more calls could start than there are threads in wait_one().
  bool push(std::unique_ptr<worker::ExecutingTask> task);
  // For the group's event loop: all calls that may start. Does not wait.
  std::vector<Started> take_all(int group);
  // For pool threads: waits for a call. The argument is the group of the call that the thread has
  // finished, or -1.
  Started wait_one(int finished_group);
  void done(int group);
  // Wakes all event loops, because calls were cancelled.
  void wake();
  // Whether calls were cancelled since the group last asked.
  bool take_cancel_news(int group);
  // Drops the calls that wait and all that come later.
  void close();
  // Readable when take_all() has something.
  int fd(int group) const;

 private:
  struct Loop {
    int fd;
    bool signalled = false, cancel_news = false;
  };
  void signal(Loop& loop) REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar pushed_;
  Groups groups_ GUARDED_BY(mutex_);
  std::vector<Loop> loops_ GUARDED_BY(mutex_);  // By group; for asyncio actors only.
  size_t idle_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
};

[[noreturn]] void end_forked_twin();

class PythonExecutor final : public worker::Executor {
 public:
  // Describes this process and the task that it began last. Guarded by the GIL.
  struct Context {
    // Null: nothing has begun yet.
    const proto::TaskTemplate* spec = nullptr;
    // Null: this process is no actor's.
    const proto::ActorSpec* actor = nullptr;
    int64_t actor_restarts = 0;
    std::string job_id, job_namespace;
    std::vector<std::string> gpu_ids;
  };

  explicit PythonExecutor(worker::Worker& worker);

  void execute(std::unique_ptr<worker::ExecutingTask> task) override;
  void cancel(const TaskId& id) override;
  bool interrupt_again(const TaskId& id) override { return interrupt_.repeat(id); }
  // The signal's Python handler raises an exception (ray/_private/ending.py).
  bool end_running() override { return pthread_kill(main_thread_, SIGTERM) == 0; }
  Interrupt& interrupt() { return interrupt_; }

  CallQueue& queue() { return queue_; }
  // All methods below need the GIL.
  //
  // Starts a call. Returns a coroutine or an async generator that the event loop must drive, or
  // null when the call is finished.
  PyPtr begin(worker::ExecutingTask& task);
  void finish(worker::ExecutingTask& task, PyObject* result);
  // Replies with the current Python error.
  void fail_with_exception(worker::ExecutingTask& task);
  // For a generator that the event loop drives: yield_item() for each item, then end_of_items().
  // False with a Python error.
  bool yield_item(worker::ExecutingTask& task, PyObject* item);
  void end_of_items(worker::ExecutingTask& task);
  // The main loop of a pool thread; never returns.
  void run_thread();
  LogMarkers& log_markers() { return log_markers_; }
  const Context& context() const { return context_; }
  // The actor ends by its own wish: no further call starts. See Worker::exit_actor().
  void leave(const std::string& why) {
    worker_.exit_actor(why);
    queue_.close();
  }
  // Gives away the instance, when no call of the actor runs or comes any more.
  PyPtr take_instance();

 private:
  void run_here(std::unique_ptr<worker::ExecutingTask> task);
  void start_concurrent(const proto::ActorSpec& spec);
  void grow_pool();
  FunctionSlot* slot_of(worker::ExecutingTask& task);
  std::unique_ptr<FunctionSlot> load_slot(worker::ExecutingTask& task);
  bool apply_job(const proto::JobConfig& job);
  bool set_environment(const worker::ExecutingTask& task, const FunctionSlot& slot);
  PyPtr call(worker::ExecutingTask& task, FunctionSlot& slot);
  struct Failure {
    std::string error;  // an encoded proto::ErrorValue
    bool retriable = false;
  };
  // Takes the current Python error. Nothing: the exception ends the process, and the task has been
  // answered.
  std::optional<Failure> describe_failure(worker::ExecutingTask& task);
  void yield_all(worker::ExecutingTask& task, PyObject* generator);
  bool wait_for_room(worker::ExecutingTask& task);
  // For a call that was cancelled before it ran, or whose result is replaced by the cancellation.
  void fail_cancelled(worker::ExecutingTask& task);
  // False when the task is cancelled already.
  bool enter_user_code(const worker::ExecutingTask& task);
  bool handle_exit(worker::ExecutingTask& task, PyObject* exception);

  worker::Worker& worker_;
  const pthread_t main_thread_;
  Interrupt interrupt_;  // For cancellations of plain tasks.
  CallQueue queue_;
  ProcessTitle title_;  // The name of the executing thread.
  std::string idle_title_ = "ray::IDLE";

  // Guarded by the GIL.
  PyPtr instance_;      // The instance, in an actor process.
  PyPtr actor_marker_;  // Its log marker, once it is made.
  // Its job is the one whose sys.path and environment are in effect.
  Context context_;
  // The slots of the actor's methods, whose callables refer to the instance.
  std::vector<FunctionSlot*> methods_;
  LogMarkers log_markers_;
  int omp_threads_ = 0;  // 0: not set yet.

  // Set by the actor's creation, in the executing thread.
  bool asyncio_ = false, threaded_ = false;
  int max_threads_ = 0;
  std::atomic<int> threads_{0};
};

// The task that this thread executes; null outside of tasks and in coroutines.
worker::ExecutingTask* current_task();

// The call that the running coroutine of an asyncio actor belongs to; null outside of those.
worker::ExecutingTask* coroutine_task();

// Makes the tasks that the running coroutine submits children of its call. For threads of event
// loops only.
void submit_for_coroutine();

bool add_executor(PyObject* module);

}  // namespace rt::python
