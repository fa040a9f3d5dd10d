// The library inside every driver and worker, as language bindings see it: references, submission,
// execution. A thin façade over worker/core (decisions) and worker/service (connections).
//
// Threads: every method may be called from any thread. One mutex guards the state; whoever waits
// also reads the sockets; a background thread does so only when nobody waits. No callback of ours
// runs user code, except Executor.
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
#include "common/metrics/recorder.h"
#include "common/proto/common.pb.h"
#include "worker/ref.h"
#include "worker/value.h"

namespace rt::worker {

struct Options {
  bool is_driver = true;
  std::string node_manager_socket;  // Unix socket of this node's node-manager
  proto::JobConfig job_config;      // drivers: job_id empty = a new job
  WorkerId worker_id;               // workers: given by the node-manager; drivers: nil
  proto::Language language = proto::LANGUAGE_PYTHON;
  std::string runtime_env;  // workers: JSON of what the process was started for. Drivers: that of
                            // their job_config
  Settings settings;
  int64_t connect_timeout_us = 30'000'000;
  // The node's store is full, and objects may be held by garbage: starts collecting that. Called
  // with our mutex held, and again while it is so.
  std::function<void()> collect_garbage = nullptr;
  metrics::Recorder* metrics =
      nullptr;  // what this process counts; outlives the Worker, which reports it. Null: nothing
};

// Fixed after start(); a worker's job and namespace are those of the first task it gets.
struct Context {
  JobId job_id;
  NodeId node_id;
  WorkerId worker_id;
  std::string ray_namespace, session_dir, session_name, node_ip, node_name, head_address,
      object_store_socket, node_manager_socket, token, dashboard_address;
  int node_manager_port = 0;
  bool is_driver = true;
};

// One argument of a call: exactly one of the two is set.
struct Arg {
  const ValueParts* value =
      nullptr;  // copied (inlined, or put into the store when larger than max_inline_bytes)
  const Ref* ref = nullptr;  // replaced by its value before the function runs
};

// A function with its options, made once and reused by every call (see TaskTemplate). Lives as long
// as the Worker.
struct Template;

struct ActorOptions {
  proto::ActorSpec spec;  // filled by the binding: names, options, class descriptor; ids are set by
                          // create_actor()
  bool get_if_exists = false;
};

// A caller's end of an actor: counted like an object reference (the ref is to
// handle_object_of(id)).
struct Actor {
  ActorId id;
  Ref handle;  // empty for weak handles (get_actor)
};

// kFailed: the value of one is an error, and others are not ready. kInterrupted: a signal arrived;
// run its handlers and call again.
enum class Waited { kDone, kFailed, kTimeout, kInterrupted };

class ExecutingTask;

// A language's way to run functions. execute() is called from Worker::run() in the thread that
// called it, in the order the calls of one caller arrived (actors: by sequence number).
class Executor {
 public:
  virtual ~Executor() = default;
  // Must lead to exactly one task->finish() or task->fail(): before it returns, or later from any
  // thread.
  virtual void execute(std::unique_ptr<ExecutingTask> task) = 0;
  // The task is cancelled() from now on: interrupts it if the language can. From any thread, with
  // our mutex held: may not call us.
  virtual void cancel(const TaskId& id) = 0;
  // The process is to end though user code runs: interrupts that, so that its clean-up runs, and
  // ends the process, or returns to run(). The node-manager insists after a moment. False: the
  // language cannot. From any thread, with our mutex held: may not call us.
  virtual bool end_running() { return false; }
};

// Calls of such an actor run beside each other.
inline bool is_concurrent(const proto::ActorSpec& spec) {
  return spec.asyncio() || spec.max_concurrency() > 1 || spec.concurrency_groups_size() > 0;
}

// A call being executed: its arguments are values, its results are handed back here.
class ExecutingTask {
 public:
  virtual ~ExecutingTask() = default;
  virtual const TaskId& id() const = 0;
  virtual const proto::TaskTemplate& spec() const = 0;
  virtual void*& language_slot() = 0;  // of the template on this worker: the binding's loaded
                                       // function; starts null
  virtual int attempt() const = 0;
  virtual int num_returns() const = 0;
  virtual std::vector<Value>&
  args() = 0;  // arg 0 is the binding's own; the rest are resolved references, in order
  virtual bool is_actor_creation() const = 0;
  virtual const proto::ActorSpec* actor_spec()
      const = 0;  // of the actor this process is (being) made, else null
  virtual int64_t actor_restarts() const = 0;
  virtual std::vector<std::string> gpu_ids()
      const = 0;  // names of the GPUs that this task, or this actor, was given
  virtual const proto::JobConfig& job_config() const = 0;  // of the job the task belongs to
  // Arguments are deserialised, user code starts. False: its caller cancelled it meanwhile and has
  // its answer, nothing is to run.
  virtual bool started() = 0;
  virtual void executed() = 0;  // user code returned, results are being stored
  virtual int64_t took_us()
      const = 0;  // from its arrival at the thread to executed(); -1 before that
  // One value per return. Large ones go to shared memory here.
  virtual void finish(std::span<const ValueParts> returns) = 0;
  // `error` is a kError value. `retry` says that the user's retry_exceptions allow another attempt.
  virtual void fail(const ValueParts& error, bool retry) = 0;
  virtual bool cancelled() const = 0;  // by the caller; any thread
  // Generators (num_returns < 0), once per item and in order, before finish() or fail(). An error
  // may be the last item.
  virtual bool skip_item() = 0;  // true: its caller has the item from an earlier attempt, it need
                                 // not be made a value
  virtual Status item(const ValueParts& value) = 0;  // sent at once. kUnavailable: nobody is there
                                                     // to take it, the generator may end
  // After an item: returns when the next one is wanted, or the task is cancelled(). kInterrupted:
  // see Waited.
  virtual Waited wait_for_room() = 0;
};

// The tasks this thread submits are children of `parent` (nil: of none), unless Worker::run()
// executes one in it.
void submit_for(const TaskId& parent);

class Worker {
 public:
  // Connects to the node-manager and the store; blocks until registered. Errors name the socket,
  // cause and remedy.
  static Result<std::unique_ptr<Worker>> start(Options options);
  // Refs may outlive it; dropping them is then a no-op.
  ~Worker();
  // Disconnects; what other threads wait for ends with kUnavailable. The destructor does it, too.
  void stop();

  const Context& context() const;
  bool is_connected() const;

  // ---- objects
  Result<Ref> put(const ValueParts& value);
  // The same bytes put before and still alive give the same object (content hash): for large
  // arguments passed by value.
  Result<Ref> put_once(const ValueParts& value);
  // Waits until every ref is ready (value or error) or the first error is there. deadline_us on the
  // steady clock; -1: none.
  Waited wait_all(std::span<const Ref> refs, int64_t deadline_us);
  // The first of the refs whose value is known to be an error; refs.size(): none.
  static size_t first_failed(std::span<const Ref> refs);
  // The caller knows of the failures among these values: they are not reported when the last
  // reference goes.
  void errors_seen(std::span<const Ref> refs);
  // Waits until `count` are ready; (*ready)[i] says which - all that are ready, not only `count`.
  // fetch_local: ready means on this node, else anywhere.
  Waited wait_some(std::span<const Ref> refs, size_t count, int64_t deadline_us, bool fetch_local,
                   std::vector<bool>* ready);
  // The value of a ready ref (an error is a value of kind kError). Waits while it is being mapped.
  Result<Value> value_of(const Ref& ref);
  // `callback` is called once when `ref` becomes ready (perhaps at once), from whichever thread
  // reads the socket, with our mutex held: it may only enqueue. Returns false, without calling it,
  // when the ref is ready already.
  bool on_ready(const Ref& ref, std::function<void()> callback);

  // Where the values are: nodes, bytes (-1: not known, as it is not made yet); no node for a small
  // value in its owner's memory. Of borrowed objects that are not here their owners are asked, if
  // wanted. deadline_us on the steady clock; -1: none. kTimeout.
  struct Where {
    std::vector<NodeId> nodes;
    int64_t size = -1;
  };
  Result<std::vector<Where>> locate(std::span<const Ref> refs, bool ask_owners,
                                    int64_t deadline_us);

  // The ref of an object this process refers to already; empty when it does not know the id.
  Ref find(const ObjectId& id);

  // References that travel. pack_ref(): what another process of the cluster needs to make it again
  // with unpack_ref() (cluster, id, owner's address); in another cluster that is kOwnerDied. Used
  // for refs pickled outside of put/submit (such a ref is kept alive until this process ends).
  std::string pack_ref(const Ref& ref);
  Result<Ref> unpack_ref(std::string_view packed);
  proto::WorkerAddress owner_of(const Ref& ref) const;

  // ---- tasks
  // spec.runtime_env is merged with this process's own; so is that of an actor
  // (core/runtime_env.h).
  const Template* make_template(proto::TaskTemplate spec);
  // `returns` gets spec.num_returns refs. Never waits. num_returns -2, a generator: the consumer's
  // end of its items and the task's result; -1: the result, with the items inside. Errors:
  // kInvalid, kObjectStoreFull (a large argument).
  Status submit(const Template* function, std::span<const Arg> args, std::vector<Ref>* returns);
  // What `ref` is the result of: queued, it never starts; running, it is interrupted if its
  // language can, or its worker is ended (force); finished, nothing happens. recursive: also what
  // it submitted. Sent to the owner of a borrowed ref. kInvalid: force on an actor's call.
  Status cancel(const Ref& ref, bool force, bool recursive);

  // ---- generators: `stream` is the consumer's end that submit() gave
  // Takes the next item, waiting for it. kDone with an empty ref: there are no more.
  Waited next_item(const Ref& stream, int64_t deadline_us, Ref* item);
  // Looks at it. kPending: `item` becomes ready when next_item() need not wait.
  enum class ItemState { kHere, kPending, kEnd };
  ItemState peek_item(const Ref& stream, Ref* item);

  // ---- actors
  Result<Actor> create_actor(ActorOptions options, std::span<const Arg> args);
  // kNotFound. `info` gets spec (with handle_blob) and state.
  Result<Actor> get_actor(const std::string& name, const std::string& ray_namespace,
                          proto::ActorInfo* info);
  // From a pickled handle: counted when `handle` refers to handle_object_of(id).
  Actor actor_from(const ActorId& id, Ref handle);
  // max_task_retries: of the method or the actor. kResourceExhausted: more than max_pending_calls.
  struct MethodOptions {
    int64_t max_task_retries = 0;
    int64_t max_pending_calls = -1;
    bool out_of_order = false;
  };
  Status submit_method(const ActorId& actor, const Template* method, const MethodOptions& options,
                       std::span<const Arg> args, std::vector<Ref>* returns);
  Status kill_actor(const ActorId& actor, bool no_restart);

  // ---- the cluster (blocking calls to the head through the node-manager's address; reconnect for
  // head_reconnect_timeout_ms) What is available of them does not lack what this process holds
  // without using it.
  Result<std::vector<proto::Node>> nodes();
  Result<bool> kv_put(const std::string& ns, const std::string& key, const std::string& value,
                      bool overwrite);
  Result<std::string> kv_get(const std::string& ns, const std::string& key);  // kNotFound
  Result<bool> kv_delete(const std::string& ns, const std::string& key);
  Result<std::vector<std::string>> kv_list(const std::string& ns, const std::string& prefix);
  Result<std::vector<proto::ActorInfo>> list_actors(bool all_namespaces);
  // Chrome trace, JSON text (common/events/timeline.h), and how many events are not in it because
  // they were dropped. Flushes this process's events first.
  Result<std::pair<std::string, int64_t>> timeline_json();
  // Lines of workers' output and notices for the driver: called from the background thread, without
  // our mutex. is_error: a failure of this process's own tasks that it dropped unseen; the text is
  // complete.
  struct DriverLine {
    std::string name, ip, text;
    int pid = 0;
    bool is_stderr = false, is_notice = false, is_error = false;
  };
  void set_log_sink(std::function<void(const std::vector<DriverLine>&)> sink);

  // ---- profiling: this process was started with RAY_PROFILING, and its binding records how long
  // calls take
  bool profiles() const;
  // A span of the timeline, of the task that this thread is in; times by the wall clock. extra: ""
  // or a JSON object. One that is too large is counted as dropped.
  void record_span(const std::string& type, int64_t start_us, int64_t end_us,
                   const std::string& extra);

  // Options.metrics has its first new value since the last report: it is sent to the node-manager,
  // at most once a second and at the end.
  void metrics_changed();

  // ---- execution (workers)
  // Executes tasks until the node-manager says to exit or disappears; returns the process exit
  // code.
  int run(Executor& executor);
  // The actor calls exit_actor(): no restart. Calls that have started are finished and answered; no
  // other call starts, they fail with ActorDied when the process has ended. The executor destroys
  // what it still holds unstarted: such a task sends no reply.
  void exit_actor(const std::string& why = "exit_actor() was called");
  // This process ends at once, without run() returning: what it has finished is sent before, so
  // that it does not run again. Nothing in a process forked from this one.
  void flush_before_exit();
  // run() returns -SIGTERM, once the thread in it has nothing more to execute. For a signal
  // handler.
  void end_by_signal();
  // run() has returned because the node-manager asked for a graceful end, and everything was
  // answered.
  bool leaves_by_itself() const;
  // What the running task is (thread-local for the thread that called execute()).
  const ExecutingTask* current_task() const;

  struct Impl;

 private:
  explicit Worker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::worker
