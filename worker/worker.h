// The library inside every driver and worker, as language bindings see it: references, submission
// and execution. A thin façade over worker/core (decisions) and worker/service (connections).
//
// Threads: every method may be called from any thread. One mutex guards the state. A thread that
// waits for something also reads the sockets; a background thread reads them only while nobody
// waits. No callback of this library runs user code, except Executor.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/settings.h"
#include "common/proto/common.pb.h"
#include "observability/metrics/recorder.h"
#include "worker/ref.h"
#include "worker/value.h"

namespace rt::command {
class Commands;
}

namespace rt::worker {

// A line of a worker's output or a notice for the driver.
struct DriverLine {
  std::string name;
  std::string ip;  // empty when it is the driver's
  std::string text;
  int pid = 0;
  bool is_stderr = false, is_notice = false;
  // The failure of one of this process's own tasks whose result was dropped unseen; its text is
  // complete.
  bool is_error = false;
};

struct Options {
  bool is_driver = true;
  // Unix socket of this node's node-manager.
  std::string node_manager_socket;
  // For drivers; an empty job_id asks for a new job.
  proto::JobConfig job_config;
  // Workers have the id that the node-manager assigned to them; that of a driver is nil.
  WorkerId worker_id;
  proto::Language language = proto::LANGUAGE_PYTHON;
  // For workers: the JSON of the environment that the process was started for. Drivers leave this
  // empty, theirs is in job_config.
  std::string runtime_env;
  Settings settings;
  int64_t connect_timeout_us = 30'000'000;
  // The node's store is full, and garbage in this process may hold references to objects: starts
  // collecting the garbage. Called with the worker's mutex held, and again as long as the store is
  // short of room.
  std::function<void()> collect_garbage = nullptr;
  // A signal may have arrived while a call waits for the head, and the call has no result that says
  // so: runs the language's handlers of signals, and returns whether the call is to end. Called
  // without the worker's mutex, in the thread that waits. Null: such calls wait on.
  std::function<bool()> interrupted = nullptr;
  // The recorder of this process's metrics. It must outlive the Worker, which reports it to the
  // node-manager. Null means that there are no metrics.
  metrics::Recorder* metrics = nullptr;
  // The commands that this process offers; must outlive the Worker. Null means that there are none.
  const command::Commands* commands = nullptr;
  // Takes what is to be printed in the driver. It is called without the worker's mutex, by the
  // background thread and at last by stop(), and from the first moment on: what the node-manager
  // says in answer to the registration comes before start() returns. Null: only lines with is_error
  // are printed.
  std::function<void(const std::vector<DriverLine>&)> log_sink = nullptr;
};

// The session as this process sees it. Fixed after start(), except that a worker takes its job and
// namespace from the first task it gets.
struct Context {
  JobId job_id;
  NodeId node_id;
  WorkerId worker_id;
  std::string ray_namespace, session_dir, session_name, node_ip, node_name, head_address,
      object_store_socket, node_manager_socket, token, dashboard_address;
  int node_manager_port = 0;
  bool is_driver = true;
};

// One argument of a call. Exactly one of the two pointers is set.
struct Arg {
  // The value is copied: inlined into the call, or put into the store when it is larger than
  // max_inline_bytes.
  const ValueParts* value = nullptr;
  // The function gets the value of the reference.
  const Ref* ref = nullptr;
};

// A function with its options, made once and reused by every call (see worker/core/task.h). Lives
// as long as the Worker.
struct Template;

struct ActorOptions {
  // Filled by the binding: names, options, class descriptor. create_actor() sets the ids.
  proto::ActorSpec spec;
  bool get_if_exists = false;
};

// A caller's handle of an actor. It is counted like an object reference: `handle` refers to
// handle_object_of(id).
struct Actor {
  ActorId id;
  Ref handle;  // Empty for weak handles (get_actor).
};

// The outcome of a wait. kFailed: the value of one reference is an error or cannot be fetched, and
// others are not ready. kInterrupted: a signal may have arrived; the caller lets its language run
// the signal handlers and calls again.
enum class Waited { kDone, kFailed, kTimeout, kInterrupted };

class ExecutingTask;

// How a language runs functions. execute() is called by Worker::run(), in the thread that called
// run() and in the order the calls of one caller arrived (for actors: by sequence number).
class Executor {
 public:
  virtual ~Executor() = default;
  // Must lead to exactly one task->finish() or task->fail(), before it returns or later from any
  // thread.
  virtual void execute(std::unique_ptr<ExecutingTask> task) = 0;
  // The task is cancelled() from here on: interrupts the task if the language can. May be called
  // in any thread, with the worker's mutex held, so it must not call the Worker.
  virtual void cancel(const TaskId& id) = 0;
  // Is called a while after cancel(), and again as long as it returns true, under the same
  // conditions: the interrupt was not noticed yet, and is repeated. A signal that arrives just
  // before a system call does not end that call.
  virtual bool interrupt_again(const TaskId&) { return false; }
  // The process is to end although user code runs. Interrupts that code, so that its clean-up
  // runs, and then either ends the process or lets run() return; the node-manager kills a process
  // that takes too long. Returns false when the language cannot interrupt. May be called in any
  // thread, with the worker's mutex held, so it must not call the Worker.
  virtual bool end_running() { return false; }
};

// Whether calls of such an actor may run at the same time.
inline bool is_concurrent(const proto::ActorSpec& spec) {
  return spec.asyncio() || spec.max_concurrency() > 1 || spec.concurrency_groups_size() > 0;
}

// A function as a binding has loaded it: the base of the binding's own class.
class LoadedFunction {
 public:
  virtual ~LoadedFunction() = default;
};

// A call being executed. Its arguments are values, and its results are handed back here. Used by
// one thread at a time, except cancelled().
class ExecutingTask {
 public:
  virtual ~ExecutingTask() = default;
  virtual const TaskId& id() const = 0;
  virtual const proto::TaskTemplate& spec() const = 0;
  // A slot of the template in this worker, null at first, in which the binding keeps the loaded
  // function as long as the Worker.
  virtual std::unique_ptr<LoadedFunction>& loaded_function() = 0;
  virtual int attempt() const = 0;
  virtual int num_returns() const = 0;
  // Argument 0 is the binding's own; the others are the values of the references, in order.
  virtual std::vector<Value>& args() = 0;
  virtual bool is_actor_creation() const = 0;
  // The actor that this process is or is being made; null in other workers.
  virtual const proto::ActorSpec* actor_spec() const = 0;
  virtual int64_t actor_restarts() const = 0;
  // Names of the GPUs assigned to this task or, in an actor, to the actor.
  virtual std::vector<std::string> gpu_ids() const = 0;
  // The configuration of the job that the task belongs to.
  virtual const proto::JobConfig& job_config() const = 0;
  // Tells that the arguments are deserialised and user code starts. False: the caller has
  // cancelled the task and has its answer, so nothing is to run.
  virtual bool started() = 0;
  // Tells that user code has returned and its results are being stored.
  virtual void executed() = 0;
  // Microseconds from the arrival of the task at the executing thread to executed(); -1 before
  // that.
  virtual int64_t took_us() const = 0;
  // Takes one value per return. Large ones are written to shared memory here.
  virtual void finish(std::span<const ValueParts> returns) = 0;
  // `error` is a value of kind kError. `retry` says that the user's retry_exceptions allow another
  // attempt.
  virtual void fail(const ValueParts& error, bool retry) = 0;
  // Whether the caller has cancelled the task. Any thread may ask.
  virtual bool cancelled() const = 0;
  // The next three are for generators (num_returns < 0): called once per item and in order, before
  // finish() or fail(). The last item may be an error.
  // True when the caller has this item from an earlier attempt, so that its value need not be
  // made.
  virtual bool skip_item() = 0;
  // Sends the item at once. Fails with kUnavailable when the caller is gone; the generator may
  // then end.
  virtual Status item(const ValueParts& value) = 0;
  // Called after an item: returns when the next one is wanted, or when the task is cancelled().
  // For kInterrupted see Waited.
  virtual Waited wait_for_room() = 0;
};

// Makes the tasks that the calling thread submits children of `parent` (nil: of no task). A task
// that Worker::run() executes in the thread takes precedence.
void submit_for(const TaskId& parent);

class Worker {
 public:
  // Connects to the node-manager and the store, and blocks until this process is registered. An
  // error names the socket, the cause and the remedy.
  static Result<std::unique_ptr<Worker>> start(Options options);
  // Refs may outlive the Worker; dropping them is then a no-op.
  ~Worker();
  // Disconnects. Waits of other threads end, and calls that return a Result or a Status fail with
  // kUnavailable. The destructor calls it, too.
  void stop();

  // A copy, because a worker that was started before its job is told the job later.
  Context context() const;
  bool is_connected() const;

  // Stores a value that this process owns. Fails with kObjectStoreFull or kOutOfDisk when a large
  // value finds no room, and with kUnavailable after stop() or when the store is gone.
  Result<Ref> put(const ValueParts& value);
  // Like put(), but bytes that were put before and still exist give the same object, found by a
  // hash of the content. Large arguments that are passed by value are put so.
  Result<Ref> put_once(const ValueParts& value);
  // The calls that take `since_us` bring values to this node. A fetch that failed (for want of
  // room, say) before that time on the steady clock is tried again; one that fails later is a
  // failure of the call, but never of the object. Calls that belong to one get have the same
  // `since_us`: the time when it began.
  //
  // Waits until every ref is ready (its value is on this node or its error is known) or one has
  // turned out to be an error or could not be fetched. `deadline_us` is on the steady clock, -1
  // means none.
  Waited wait_all(std::span<const Ref> refs, int64_t deadline_us, int64_t since_us);
  // The index of the first ref whose value is known to be an error or could not be fetched;
  // refs.size() if there is none.
  size_t first_failed(std::span<const Ref> refs, int64_t since_us);
  // The caller knows of the failures among these values, so they are not reported as unhandled
  // when their last reference goes.
  void errors_seen(std::span<const Ref> refs);
  // Waits until `count` of the refs are ready. (*ready)[i] marks the ready ones that were counted,
  // at most `count`. With `fetch_local` a ref is ready when its value is on this node or could not
  // be fetched, else when it exists anywhere.
  Waited wait_some(std::span<const Ref> refs, size_t count, int64_t deadline_us, int64_t since_us,
                   bool fetch_local, std::vector<bool>* ready);
  // The value of a ready ref; an error is a value of kind kError. Waits while the value is being
  // fetched and mapped, and fails with the store's error when that fails.
  Result<Value> value_of(const Ref& ref, int64_t since_us);
  // Calls `callback` once when `ref` becomes ready, in whichever thread reads the socket and with
  // the worker's mutex held, so it may only enqueue. Returns false, without calling it, when the
  // ref is ready already.
  bool on_ready(const Ref& ref, std::function<void()> callback);

  // Where the values are: the nodes that have a copy (none for a small value in its owner's
  // memory) and the bytes (-1: not known, because the value is not made yet). With `ask_owners`
  // the owners of borrowed objects that are not ready here are asked. `deadline_us` is on the
  // steady clock, -1 means none; fails with kTimeout when it passes.
  struct Where {
    std::vector<NodeId> nodes;
    int64_t size = -1;
  };
  Result<std::vector<Where>> locate(std::span<const Ref> refs, bool ask_owners,
                                    int64_t deadline_us);

  // The ref of an object that this process already refers to; empty when the id is not known.
  Ref find(const ObjectId& id);

  // References that travel outside of put() and submit(). pack_ref() writes what another process
  // of the cluster needs to make the reference again (cluster, id, owner's address), and keeps the
  // object alive as long as this Worker. unpack_ref() fails with kOwnerDied in another cluster and
  // with kInvalid for malformed bytes.
  std::string pack_ref(const Ref& ref);
  Result<Ref> unpack_ref(std::string_view packed);
  proto::WorkerAddress owner_of(const Ref& ref) const;

  // Makes the template of a function or, with a class name in the descriptor, of an actor's
  // method. Equal specs give the same template. The runtime_env of a function is merged with that
  // of this process (core/runtime_env.h). Fails with kInvalid when the spec is too large to travel
  // with requests for workers.
  Result<const Template*> make_template(proto::TaskTemplate spec);
  // Submits a call without waiting. `returns` gets spec.num_returns refs; for a generator
  // (num_returns -2) the consumer's end of its items and then the task's result, for num_returns
  // -1 the result, which holds the items. Fails with kUnavailable after stop(), and as put() does
  // when a large argument cannot be stored.
  Status submit(const Template* function, std::span<const Arg> args, std::vector<Ref>* returns);
  // Cancels the task that `ref` is a result of. A queued task never starts; a running one is
  // interrupted if its language can or, with `force`, its worker is ended; a finished one is left
  // alone. With `recursive` the tasks it submitted are cancelled as well. For a borrowed ref the
  // request is sent to the owner. Fails with kInvalid for `force` on an actor's call.
  Status cancel(const Ref& ref, bool force, bool recursive);

  // Takes the next item of a generator, waiting for it. `stream` is the consumer's end that
  // submit() gave. kDone with an empty `item` means that there are no more.
  Waited next_item(const Ref& stream, int64_t deadline_us, Ref* item);
  // Looks at the next item without taking it. kPending: `item` becomes ready when next_item() need
  // not wait.
  enum class ItemState { kHere, kPending, kEnd };
  ItemState peek_item(const Ref& stream, Ref* item);

  // Creates an actor. A named one is registered before this returns, so that a name in use is an
  // error, or with get_if_exists gives the existing actor as a weak handle, and `existing` gets its
  // spec (with handle_blob) and state. Otherwise the call does not wait, and a failure shows in the
  // actor's first call.
  Result<Actor> create_actor(ActorOptions options, std::span<const Arg> args,
                             std::optional<proto::ActorInfo>* existing = nullptr);
  // Looks up a named actor of a namespace ("": that of this process) and returns a weak handle.
  // Fails with kNotFound. `info` gets spec (with handle_blob) and state.
  Result<Actor> get_actor(const std::string& name, const std::string& ray_namespace,
                          proto::ActorInfo* info);
  // Makes an actor from a pickled handle. It is counted when `handle` refers to
  // handle_object_of(id).
  Actor actor_from(const ActorId& id, Ref handle);
  // Options of one call. max_task_retries is that of the method or of the actor. Above
  // max_pending_calls (-1: no limit) submit_method() fails with kResourceExhausted.
  struct MethodOptions {
    int64_t max_task_retries = 0;
    int64_t max_pending_calls = -1;
    bool out_of_order = false;
  };
  Status submit_method(const ActorId& actor, const Template* method, const MethodOptions& options,
                       std::span<const Arg> args, std::vector<Ref>* returns);
  Status kill_actor(const ActorId& actor, bool no_restart);

  // Whether this process was started with RAY_PROFILING, so that its binding records how long
  // calls take.
  bool profiles() const;
  // Adds a span to the timeline, on behalf of the task that the calling thread executes. Times are
  // microseconds of the wall clock. `extra` is "" or a JSON object. A span that is too large is
  // counted as dropped.
  void record_span(const std::string& type, int64_t start_us, int64_t end_us,
                   const std::string& extra);

  // Tells that Options.metrics has a new value for the first time since the last report. It is
  // sent to the node-manager at most once a second, and when the process ends.
  void metrics_changed();

  // Executes tasks until the node-manager tells this worker to exit or disappears. Returns the
  // exit code of the process.
  int run(Executor& executor);
  // The actor ends by its own wish and is not restarted. Calls that have started are finished and
  // answered. No other call starts; they fail with ActorDied when the process has ended. The
  // executor destroys the tasks that it holds unstarted, which sends no reply for them.
  void exit_actor(const std::string& why = "exit_actor() was called");
  // Called before the process ends without run() returning: sends the replies of finished tasks,
  // which would otherwise run again. Does nothing in a process that was forked from this one.
  void flush_before_exit();
  // Makes run() return -SIGTERM once the thread in it has nothing more to execute. Safe in a
  // signal handler.
  void end_by_signal();
  // True when run() returned because this worker was to leave gracefully, and everything has been
  // answered.
  bool leaves_by_itself() const;
  // The task that the calling thread executes; null when there is none.
  const ExecutingTask* current_task() const;

  // Only the functions beside this class use it: cluster.h, drains.h, placement_groups.h.
  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::worker
