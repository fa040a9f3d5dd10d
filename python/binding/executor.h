// Runs tasks in a worker process.
//
// Plain workers and plain actors execute in the thread that called Worker::run(), in order. A
// threaded actor's calls go to a pool of Python threads, an asyncio actor's to its event-loop
// thread; both through a queue that needs no GIL to be filled.
//
// Lifecycle: one per process, made by run_worker(), lives until the process ends. GIL: execute()
// takes it when it runs Python; the reply leaves (the task is destroyed) after the Python arguments
// are gone and the GIL is free.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "python/binding/process_title.h"
#include "python/binding/py.h"
#include "worker/core/call_groups.h"
#include "worker/worker.h"

namespace rt::python {

// What a template means in this process: kept in ExecutingTask::language_slot().
struct FunctionSlot {
  PyPtr callable;       // function, class, or method of the actor
  PyPtr log_marker;     // ":task_name:f" - printed before the first output of this function
  bool talks = true;    // it may write to the log files: not known yet, or it did in its last run
  bool talked = false;  // it once did
  PyPtr retry_types;    // tuple of classes; null: all
  std::string title;    // "ray::f" or "ray::Class.method"
  int omp_threads = 1;
  bool shows_gpus = false;  // a call's own GPUs are made visible before it runs
};

// As long as `encoded` lives, a proto::ErrorValue.
worker::ValueParts error_parts(const std::string& encoded);

// Where the calls of threaded and asyncio actors wait for their turn (worker/core/call_groups.h).
// Bounded by the callers' actor_max_in_flight. The threads of a pool serve all groups; each group
// of an asyncio actor has an event loop of its own, so that one that blocks its loop stops no
// other.
class CallQueue {
 public:
  using Groups = worker::CallGroups<std::unique_ptr<worker::ExecutingTask>>;
  using Started = Groups::Started;  // to be followed by done() or the next wait_one()

  CallQueue() = default;
  ~CallQueue();
  void configure(const proto::ActorSpec& spec);
  int capacity() const { return groups_.capacity(); }
  std::vector<std::string> groups() const { return groups_.names(); }  // by number
  // False: more calls could start than threads are in wait_one().
  bool push(std::unique_ptr<worker::ExecutingTask> task);
  std::vector<Started> take_all(int group);  // does not wait; for the group's event loop
  Started wait_one(int finished_group);      // for pool threads; -1: none finished
  void done(int group);
  void wake();                       // for what take_cancel_news() says
  bool take_cancel_news(int group);  // whether calls were cancelled since the last time
  void close();                      // drops what waits and what comes later
  int fd(int group) const { return loops_[group].fd; }  // readable when take_all() has something

 private:
  struct Loop {
    int fd;
    bool signalled = false, cancel_news = false;
  };
  void signal(Loop& loop);

  std::mutex mutex_;
  std::condition_variable pushed_;
  Groups groups_;
  std::vector<Loop> loops_;  // by group; of asyncio actors
  size_t idle_ = 0;
  bool closed_ = false;
};

[[noreturn]] void end_forked_twin();

class PythonExecutor final : public worker::Executor {
 public:
  // What this process is, or what began last in it. GIL.
  struct Context {
    const proto::TaskTemplate* spec = nullptr;  // null: nothing began yet
    const proto::ActorSpec* actor = nullptr;    // null: of no actor
    int64_t actor_restarts = 0;
    std::string job_id, job_namespace;
    std::vector<std::string> gpu_ids;
  };

  explicit PythonExecutor(worker::Worker& worker);

  void execute(std::unique_ptr<worker::ExecutingTask> task) override;
  void cancel(const TaskId& id) override;
  bool end_running() override {
    return pthread_kill(main_thread_, SIGTERM) == 0;
  }  // its Python handler raises (ray/_private/ending.py)
  // Whether the interrupt that just came to the executing thread is for what it runs. Once per
  // cancellation.
  bool take_cancel();

  CallQueue& queue() { return queue_; }
  // All below with the GIL. begin() returns a coroutine or an async generator to be driven by the
  // event loop, or null when the call is finished.
  PyPtr begin(worker::ExecutingTask& task);
  void finish(worker::ExecutingTask& task, PyObject* result);
  void fail_with_exception(worker::ExecutingTask& task);  // the current Python error
  // Of a generator that the event loop drives: one item, then the end. False with a Python error.
  bool yield_item(worker::ExecutingTask& task, PyObject* item);
  void end_of_items(worker::ExecutingTask& task);
  void run_thread();  // a pool thread's life
  // For who is about to print: the name of the function that ran last, and the marker of the task
  // whose output it is.
  PyObject* log_marker();
  PyPtr task_marker();
  const Context& context() const { return context_; }
  const TaskId& last_task() const { return last_task_; }
  PyPtr take_instance();  // when no call of the actor runs or comes any more

 private:
  void run_here(std::unique_ptr<worker::ExecutingTask> task);
  void start_concurrent(const proto::ActorSpec& spec);
  void grow_pool();
  FunctionSlot* slot_of(worker::ExecutingTask& task);
  std::unique_ptr<FunctionSlot> load_slot(worker::ExecutingTask& task);
  bool apply_job(const proto::JobConfig& job);
  bool set_environment(const worker::ExecutingTask& task, const FunctionSlot& slot);
  PyPtr call(worker::ExecutingTask& task, FunctionSlot& slot);
  // Takes the current Python error as an encoded proto::ErrorValue. False: it ends the process, and
  // the task is answered.
  bool describe_failure(worker::ExecutingTask& task, std::string* error, bool* retriable);
  void yield_all(worker::ExecutingTask& task, PyObject* generator);
  bool wait_for_room(worker::ExecutingTask& task);
  void fail_cancelled(worker::ExecutingTask& task);  // before it ran, or in place of its result
  bool enter_user_code(const worker::ExecutingTask& task);  // false: cancelled already
  void leave_user_code();
  bool calls_overlap() const { return asyncio_ || threaded_; }
  void mark_logs(const worker::ExecutingTask& task, FunctionSlot& slot);  // before it begins
  void look_at_logs(FunctionSlot& slot, int64_t took_us);                 // after it ended
  PyPtr marker_of(const TaskId& id, int attempt);
  bool handle_exit(worker::ExecutingTask& task, PyObject* exception);

  worker::Worker& worker_;
  const pthread_t main_thread_;
  CallQueue queue_;
  ProcessTitle title_;  // of the executing thread
  std::string idle_title_ = "ray::IDLE";

  // Guarded by the GIL.
  PyPtr instance_;      // of an actor process
  PyPtr actor_marker_;  // its log marker, once it is made
  Context context_;     // its job is the one whose sys.path and environment are in effect
  std::vector<FunctionSlot*> methods_;  // that hold the instance
  FunctionSlot* last_slot_ = nullptr;   // of what ran last
  TaskId last_task_;                    // likewise
  int last_attempt_ = 0;
  bool named_ = false;   // the log files name a function
  bool marked_ = false;  // they name a task: the next one is to end that
  PyPtr marker_;         // made last, of
  TaskId marker_task_;
  int marker_attempt_ = -1;
  int omp_threads_ = 0;  // nothing set yet

  bool asyncio_ = false, threaded_ = false;  // set by the actor's creation, in the executing thread
  int max_threads_ = 0;
  std::atomic<int> threads_{0};

  std::mutex running_mutex_;
  TaskId running_;  // whose user code the executing thread is in; nil: none that may be interrupted
  bool interrupt_ = false;  // it is to be
};

// The task this thread executes, null outside of tasks and in coroutines.
worker::ExecutingTask* current_task();

// The call that the running coroutine of an asyncio actor belongs to; null outside of those.
worker::ExecutingTask* coroutine_task();

// Tasks that the running coroutine submits are children of its call. In the event loop's thread
// only.
void submit_for_coroutine();

bool add_executor(PyObject* module);

}  // namespace rt::python
