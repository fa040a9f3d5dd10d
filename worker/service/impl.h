// The worker's inside: one mutex, one PollLoop, the cores, and the connections they decide about.
// One file per concern:
//   startup.cc  start, registration, the background thread, stop       pump.cc     who reads the
//   sockets, and when peers.cc    connections to workers, node-managers, the head        objects.cc
//   put, get, wait, serving values to borrowers submit.cc   tasks out, replies in actors.cc actors'
//   lives as their callers see them execute.cc  tasks in, replies out streams.cc  what generators
//   yield, on all sides cluster.cc  blocking calls to the head, logs, timeline, metrics listing.cc
//   what this process refers to and has to do, for people
//
// Threads: everything marked (L) needs `mutex`. Callbacks of the loop run under it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/base/shared_counters.h"
#include "common/events/task_event_writer.h"
#include "common/net/poll_loop.h"
#include "common/profile_service/profile_service.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/worker.pb.h"
#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "daemons/object_store/client/store_client.h"
#include "worker/core/actor_calls.h"
#include "worker/core/generator_stream.h"
#include "worker/core/ref_table.h"
#include "worker/core/submitter.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"
#include "worker/service/content_hash.h"
#include "worker/worker.h"

namespace rt::worker {

class ExecutingTaskImpl;

// A connection to or from another worker, with what flows over it. Lives until the connection
// closes.
struct Link {
  std::shared_ptr<rpc::Connection> connection;
  WorkerId peer;
  // as owner
  uint64_t lease_key = 0;  // the lease its worker is ours by; 0: none
  ActorId actor;           // or the actor that lives there; nil: none
  std::vector<bool> templates_sent;
  bool gpus_sent = false;  // some
  TaskId parent_sent;      // of the tasks behind
  // as executor
  std::unordered_map<uint32_t, struct ExecTemplate*> templates;
  std::unique_ptr<proto::JobConfig> job_config;
  std::vector<std::string> gpu_ids;   // of its tasks
  TaskId parent;                      // likewise
  bool recording_told = false;        // to the peer, that this process records its submissions
  bool submissions_recorded = false;  // by the peer, of its tasks
  uint64_t events_of = 0;  // of their events: the index of the peer, in the batch with this number
  uint32_t event_owner = 0;
  bool open = true;
};

// A template as executors see it, shared by all connections that sent the same bytes.
struct ExecTemplate {
  proto::TaskTemplate spec;
  void* language_slot = nullptr;
  std::string display;  // bare function name, or Class.method
  int64_t calls = 0;    // executed here, counted for max_calls
  // Of its events: indexes of strings of the batch with this number.
  uint64_t events_of = 0;
  TaskEventCommon event;
  bool ran = false;  // once, here: it is loaded
};

// A return of a reply, or an item of a generator, as read from the wire.
struct Return {
  bool in_store = false;
  Bytes value;  // or, in the store, its packed references
  int64_t size = 0;
};
Return read_return(wire::Reader& reader);

// A task that arrived and has not started.
struct IncomingTask {
  std::shared_ptr<Link> link;  // null: actor creation (reply goes to the node-manager)
  uint32_t seq = 0;
  ExecTemplate* function = nullptr;
  TaskId id;
  int attempt = 0;
  uint32_t items_known = 0, items_taken = 0;  // of a generator, from earlier attempts
  std::vector<Value> args;
  int unready = 0;
  bool failed = false;  // an argument could not be had: `failure` is the reply
  std::string failure;
  TaskId parent;  // nil: not known
  int64_t created_us = 0;
  bool without_arguments() const { return args.empty() || args.front().kind == ValueKind::kNone; }
};

class NodeClient;
class WorkerRpc;

// Where a submitted task was sent; no value: it waits here.
struct TaskPlace {
  std::string node_id, worker_id;
  int pid = 0;
};
using PendingTasks = std::unordered_map<const Task*, std::optional<TaskPlace>>;

struct Worker::Impl : public SubmitComm, public ActorComm, public RefComm {
  explicit Impl(Options options);
  ~Impl() override;

  using Lock = std::unique_lock<std::mutex>;

  // ---- startup.cc
  Status start();
  const std::string& runtime_env() const {
    return options.is_driver ? options.job_config.runtime_env() : options.runtime_env;
  }
  Status finish_start();  // (L)
  void stop();
  void background();
  void on_node_manager_lost(const Error& why);  // (L)

  // ---- pump.cc
  // Reads sockets until `done()` holds, the deadline passes or a signal arrives. Enters and leaves
  // with the lock held.
  Waited wait_until(Lock& lock, int64_t deadline_us, const std::function<bool()>& done);
  void poll_once(Lock& lock);  // (L) without waiting, unless somebody else reads
  void leave_wait();
  void after_dispatch();                 // (L) drains releases, flushes, wakes followers
  void schedule_tick(int64_t delay_us);  // (L)
  void tick();                           // (L)

  // ---- peers.cc
  using WithLink = std::function<void(Result<std::shared_ptr<Link>>)>;
  void with_peer(const proto::WorkerAddress& address, WithLink done);  // (L)
  void note_build(const std::string& theirs);                          // (L)
  std::shared_ptr<Link> adopt_link(const std::shared_ptr<rpc::Connection>& connection,
                                   bool inbound);                         // (L)
  void link_closed(const std::shared_ptr<Link>& link, const Error& why);  // (L)
  using WithConnection = std::function<void(Result<std::shared_ptr<rpc::Connection>>)>;
  void with_node(const NodeKey& node, WithConnection done);  // (L) nil: the local node-manager
  void with_head(WithConnection done);                       // (L)
  void head_closed();                                        // (L)
  void on_flat(const std::shared_ptr<Link>& link, uint32_t type, Bytes body);  // (L)
  void on_head_event(const proto::HeadEvent& event);                           // (L)
  rpc::Identity identity() const;

  // ---- objects.cc
  Result<Ref> put(const ValueParts& parts,
                  const ContentHash* content);  // null: a new object each time
  Result<Ref> put_once(const ValueParts& parts);
  void keep_recent(const Ref& argument);  // (L) the large argument stored or found last
  void drop_recent();                     // (L) unless it was used a moment ago
  Ref store_small(const ObjectId& id, const ValueParts& parts, const std::string& packed);  // (L)
  Result<Ref> store_large(Lock& lock, const ObjectId& id, const ValueParts& parts,
                          const std::string& packed, size_t size);
  struct Sealed {
    OwnedBytes view;
    int64_t size;
  };
  // Writes `parts` into shared memory. The lock is released while waiting and copying.
  Result<Sealed> write_to_store(Lock& lock, const ObjectId& id, const WorkerId& owner,
                                const ValueParts& parts, const std::string& packed, size_t size);
  void mark_ready(ObjectEntry& entry);                                 // (L)
  void set_blob(ObjectEntry& entry, Blob blob);                        // (L) and ready
  void set_error(ObjectEntry& entry, const proto::ErrorValue& error);  // (L)
  void owner_died(ObjectEntry& entry, const Error& why);               // (L)
  void resolve(ObjectEntry& entry);  // (L) asks the owner of a borrowed object
  void fetch(ObjectEntry& entry);    // (L) maps a shared object, from other nodes if need be
  void lost(ObjectEntry& entry, std::string why);  // (L) a borrowed object is in no store any more
  bool is_local(const ObjectEntry& entry) const;   // value readable without waiting
  Result<Value> value_of(const Ref& ref);
  Result<Value> decode(ObjectEntry& entry, Bytes encoded, Keepalive keepalive, bool shared);  // (L)
  std::vector<Ref> take_refs(Bytes packed, bool registered, bool register_now_);              // (L)
  std::string pack(std::span<const Ref> refs);
  const proto::WorkerAddress& owner_of(const ObjectEntry& entry) const;
  ObjectId next_put_id();
  void serve_object(const proto::ObjectStatusRequest& request,
                    std::function<void(const proto::ObjectStatus&)> reply);  // (L)
  void fill_status(const ObjectEntry& entry, bool want_value, proto::ObjectStatus* status);

  // ---- submit.cc
  Status build_args(Lock& lock, Task& task, std::span<const Arg> args);
  Status submit(const Template* function, std::span<const Arg> args, std::vector<Ref>* returns);
  void make_returns(Task& task, std::vector<Ref>* returns);  // (L)
  // (L) Calls `ready` once when the last unready argument became ready, unless the task was dropped
  // meanwhile. False: all are ready.
  bool wait_for_args(Task* task, std::function<void()> ready);
  void task_ready(Task* task);   // (L)
  bool args_failed(Task* task);  // (L) an argument is an error: fails the task with it
  TaskId or_driver(const TaskId& parent) const;
  TaskId parent_of(const Task& task) const { return or_driver(task.parent); }
  void write_task(Link& link, const Task& task);                       // (L)
  void tell_recording(Link& link);                                     // (L) before the first task
  void write_gpus(Link& link, const std::vector<std::string>& names);  // (L)
  void on_replies(const std::shared_ptr<Link>& link, Bytes body);      // (L)
  Task* task_in_flight(Link& link, uint32_t seq);                      // (L) null: no such one
  ObjectLocation location_of(const Link& link);  // (L) of what its worker sealed
  void complete(Task* task, const ObjectLocation& node, std::span<const Return> returns,
                wire::TaskStatus status);  // (L)
  void store_return(ObjectEntry& entry, const Return& value, const ObjectLocation& node,
                    bool cancelled);  // (L) and ready
  void tell_retry(const Task& task,
                  const proto::ErrorValue& error);     // (L) the program's people, that an attempt
                                                       // failed and another one follows
  void fail_with_blob(Task* task, const Blob& error);  // (L) takes the task, which no process had
  void settle_with_error(Task* task, const Blob& error);  // (L) takes the task
  void drop_task(Task* task);                             // (L)
  Status cancel(const Ref& ref, bool force, bool recursive);
  // (L) A pending task of this process. kInvalid: force on an actor's call.
  Status cancel_task(Task* task, bool force, bool recursive);
  void end_worker_of(uint64_t lease_key,
                     const TaskId& id);  // (L) after a while, if the task is still there
  void cancel_children(const TaskId& parent, bool force);  // (L)
  Task* producer_of(const ObjectEntry* entry) const;       // (L) null: nothing is pending
  // SubmitComm
  void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                   const std::string& what, uint64_t last_answer) override;
  void connect_lease(Lease& lease) override;
  void push_task(Lease& lease, Task& task) override;
  void take_back(Lease& lease, int count) override;
  void return_lease(Lease& lease, bool worker_failed) override;
  void ask_exit(Lease& lease) override;
  // How a worker that cannot be reached ended, as its node tells.
  void ask_exit(const proto::WorkerAddress& worker, const NodeKey& node,
                std::function<void(proto::ExitInfo)> done);
  void fail_task(Task* task, const proto::ErrorValue& error) override;  // also ActorComm's
  void attempt_failed(const Task& task, const proto::ErrorValue& error) override;  // likewise

  // ---- streams.cc
  void open_stream(Task& task, std::vector<Ref>* returns);       // (L)
  void on_items(const std::shared_ptr<Link>& link, Bytes body);  // (L)
  void acknowledge_items(GeneratorStream& stream);  // (L) tells the producer, when it is time
  void end_stream(Task* task, const Blob* error);   // (L)
  void complete_stream(Task* task, std::span<const Return> returns, bool failed);  // (L)
  static Blob none_blob();
  void stream_dropped(const TaskId& task) override;                    // RefComm
  void on_items_taken(const std::shared_ptr<Link>& link, Bytes body);  // (L)
  void flush_items(Link& link);                                        // (L)
  int64_t items_ahead() const;  // (L) of all generators that run here

  // ---- actors.cc
  void subscribe_actor(const ActorId& id) override;
  bool forget_actor(const ActorId& id) override;
  bool counted(const ActorId& id);  // (L) a handle here, or it was made here and has not ended
  void connect_actor(ActorLink& actor) override;
  void push_call(ActorLink& actor, Task& task) override;
  void ask_again(const ActorId& id, int64_t delay_us) override;
  void query_actor(const ActorId& id);  // (L)
  Result<Actor> create_actor(ActorOptions options, std::span<const Arg> args);
  void register_actor(std::shared_ptr<proto::RegisterActorRequest> request,
                      std::function<void(Result<proto::RegisterActorReply>)> done);  // (L)
  Status submit_method(const ActorId& actor, const Template* method, const MethodOptions& options,
                       std::span<const Arg> args, std::vector<Ref>* returns);

  // RefComm
  void add_borrower(const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids,
                    const WorkerId& borrower) override;
  void remove_borrower(const proto::WorkerAddress& owner, const ObjectId& id) override;
  void free_object(ObjectEntry& entry) override;
  void report_unseen(const ObjectEntry& entry);  // (L)
  void actor_out_of_scope(const ActorId& actor) override;

  // ---- execute.cc
  int run(Executor& executor);
  void flush_before_exit(bool in_signal_handler);
  void end_by_signal();
  void adopt_job(const proto::JobConfig& job);                       // (L)
  void on_tasks(const std::shared_ptr<Link>& link, Bytes body);      // (L)
  void on_take_back(const std::shared_ptr<Link>& link, Bytes body);  // (L)
  void on_cancel(const std::shared_ptr<Link>& link, Bytes body);     // (L)
  void return_unstarted(const IncomingTask& task);                   // (L) to the owner
  void give_back_unstarted(Link* only, size_t limit);                // (L)
  struct ReferredArg {
    size_t index;
    ObjectId id;
    bool in_store;
    std::vector<store::Location> locations;
    proto::WorkerAddress owner;
  };
  bool read_args(IncomingTask& task, wire::Reader& reader, int count,
                 std::vector<ReferredArg>* referred);  // (L)
  // (L) An argument by reference whose owner says where it is.
  void ask_for_arg(const std::shared_ptr<IncomingTask>& task, size_t index, const ObjectId& id,
                   const proto::WorkerAddress& owner);
  void fetch_arg(const std::shared_ptr<IncomingTask>& task, size_t index, const ObjectId& id,
                 std::vector<store::Location> locations, proto::WorkerAddress owner);  // (L)
  void start_actor(const proto::CreateActorRequest& request,
                   std::function<void(const proto::CreateActorReply&)> reply);  // (L)
  std::shared_ptr<IncomingTask> next_task();          // (L) null: nothing can run now
  void require_group(const std::string& name) const;  // (L) ends the process when there is none
  bool was_last_call(ExecTemplate& function);  // (L) max_calls is reached and this process may end
  void send_reply(ExecutingTaskImpl& task);    // (L)
  // (L) At once, or after what is held already and once the owners of `third_party` know of the
  // borrower at the other end.
  using ThirdParty = std::vector<std::pair<proto::WorkerAddress, std::vector<ObjectId>>>;
  void send_held(const std::shared_ptr<Link>& link, uint32_t type, std::string_view body,
                 const ThirdParty& third_party, int outstanding = 0);
  void flush_held_replies();       // (L)
  void set_blocked(bool blocked);  // (L)
  void request_exit(int code);     // (L)
  // (L) The node-manager wants this worker gone: graceful once its queued work is done and nobody
  // needs its objects, else at once.
  void leave(bool graceful);
  void exit_actor(
      const std::string& why);  // (L) by its own wish: nothing that waits starts any more
  bool may_leave() const;       // (L)
  bool is_needed() const;       // (L) by others, when it has nothing to do
  void leave_if_idle();         // (L) after the last of what a graceful exit waited for
  ExecTemplate* exec_template(std::string_view serialized);  // (L)

  // ---- cluster.cc
  void settle_leases();
  std::set<NodeKey> returned_at;  // nodes that leases were returned to; for settle_leases
  template <class Method>
  Result<typename rpc::StubMethod<Method>::ReplyType> call_head(
      Method method, const typename rpc::StubMethod<Method>::RequestType& request);
  void record_event(const ExecutingTaskImpl& task);  // (L) it ended here
  // (L) As its owner: no process can tell. `end` is of the process that had it, if one had.
  void record_failure(const Task& task, const proto::ErrorValue* error, const proto::ExitInfo* end);
  void record_span(const std::string& type, int64_t start_us, int64_t end_us,
                   const std::string& extra);
  bool may_record_event();                                  // (L)
  uint32_t event_error(const proto::ErrorValue& error);     // (L)
  uint32_t event_error(Bytes encoded);                      // (L)
  const TaskEventCommon& event_of(ExecTemplate& function);  // (L)
  uint32_t event_parent_of(const TaskId& parent);           // (L)
  uint32_t event_owner_of(Link* link);  // (L) null: of the actor that this process is
  void recorded_event();                // (L)
  void flush_events();                  // (L)
  void schedule_metrics();              // (L)
  void flush_metrics();                 // (L)
  void flush_records();  // (L) events and metrics: this process ends, or somebody asks

  // ---- listing.cc
  PendingTasks pending_tasks();                            // (L) submitted here, not ended
  void list_objects(proto::ObjectRecords* out);            // (L)
  void list_tasks(proto::TaskRecords* out);                // (L)
  void subscribe(const proto::SubscribeRequest& request);  // (L)
  void resubscribe();                                      // (L)
  void deliver_logs(Lock& lock);

  Options options;
  Settings& settings;
  Context context;
  proto::WorkerAddress self_address;
  std::string cluster_id, token;
  std::string serialized_job;
  std::string socket_path;

  std::mutex mutex;
  std::unique_ptr<net::PollLoop> loop;

  // who reads
  bool pumping = false;  // a thread is in loop->wait()
  bool leader_is_background = false;
  int followers = 0;
  std::condition_variable follower_cv, background_cv;
  std::atomic<uint64_t> pump_serial{0};
  std::atomic<bool> background_asleep{false};
  std::atomic<bool> stopping{false};
  bool connected = false;
  std::thread background_thread;
  int64_t tick_at = -1;
  net::Loop::TimerId tick_timer = 0;
  uint32_t submits_since_poll = 0;

  // connections
  std::unique_ptr<profile::ProfileServer> profile_server;  // before the connections that ask it
  std::unique_ptr<rpc::Server> server;
  std::unique_ptr<NodeClient> node_client;
  std::unique_ptr<WorkerRpc> worker_rpc;
  std::shared_ptr<rpc::Connection> node_manager;
  std::shared_ptr<rpc::Connection> head;
  std::vector<WithConnection> head_waiters;
  bool head_connecting = false;
  int64_t head_lost_us = 0;
  struct Peer {
    std::shared_ptr<Link> link;
    std::vector<WithLink> waiters;
  };
  std::unordered_map<WorkerId, Peer> peers;
  std::unordered_set<std::shared_ptr<Link>> links;
  struct NodePeer {
    std::shared_ptr<rpc::Connection> connection;
    std::vector<WithConnection> waiters;
  };
  std::unordered_map<NodeId, NodePeer> node_peers;
  std::unordered_map<NodeId, proto::Node> node_table;

  // cores
  std::unique_ptr<RefTable> refs;
  std::unique_ptr<GeneratorStreams> streams;
  std::unique_ptr<Submitter> submitter;
  std::unique_ptr<ActorCalls> actors;
  TaskPool tasks;
  std::unique_ptr<store::StoreClient> store;
  std::vector<std::unique_ptr<Template>> templates;
  std::unordered_map<std::string, Template*> template_by_bytes;
  Rng rng;
  uint64_t next_task_unique = 0;
  TaskId put_task;  // the "task" puts of this process belong to
  struct HashOfHash {
    size_t operator()(const ContentHash& k) const { return k.low; }
  };
  std::unordered_map<ContentHash, ObjectId, HashOfHash> put_by_content;
  std::unordered_map<ObjectId, ContentHash> content_of;
  Ref recent_argument;  // see keep_recent()
  int64_t recent_until_us = 0;
  bool recent_timer_set = false;
  std::atomic<uint64_t> errors_stored{0};  // values that became errors; see Worker::wait_all()
  const bool ignore_unseen_errors;         // RAY_IGNORE_UNHANDLED_ERRORS
  const bool profiles;                     // RAY_PROFILING is there, whatever it says
  std::vector<Ref> pinned_forever;         // packed out of band
  std::unordered_map<ActorId, std::vector<Ref>>
      actor_args;  // creation arguments of actors made here, as long as they may be needed

  // subscriptions at the head
  proto::SubscribeRequest subscriptions;
  std::unordered_set<std::string> subscribed_actors;

  // execution
  Executor* executor = nullptr;
  bool exiting = false, exit_when_idle = false;
  bool refusing = false;  // exit_actor() was called: calls are neither started nor answered
  int exit_code = 0;
  std::atomic<bool> signalled_to_end{false};
  bool end_told = false;  // to the task that waits
  pid_t pid = 0;          // of run()
  std::deque<std::shared_ptr<IncomingTask>> incoming;
  std::unordered_map<std::string, std::unique_ptr<ExecTemplate>> exec_templates;
  int executing = 0;
  ExecutingTaskImpl* running = nullptr;  // started and not answered: a list
  int64_t last_flush_us = 0, last_item_flush_us = 0;
  bool item_flush_timer_set = false;
  std::unique_ptr<proto::CreateActorRequest> actor;  // of the actor this process is
  std::function<void()>
      early_start;  // an actor's start that came before this process was ready for it
  std::function<void(const proto::CreateActorReply&)> actor_reply;
  std::optional<proto::CreateActorReply>
      creation_answer;  // waits for the borrows the constructor kept
  struct HeldReply {
    std::shared_ptr<Link> link;
    uint32_t type;
    std::string body;
    int waiting = 0;  // acknowledgements on behalf of the receiver still out
  };
  std::deque<std::shared_ptr<HeldReply>> held_replies;
  std::atomic<bool> reported_blocked{false};
  int blocked_threads = 0;

  // events
  TaskEventWriter events;
  struct EventKind {
    const ExecTemplate* function = nullptr;
    const Link* link = nullptr;
    TaskId parent;
    int attempt = 0;
    friend bool operator==(const EventKind&, const EventKind&) = default;
  };
  EventKind event_kind;  // of the last one that was added, if that was a success of a task
  TaskId event_parent;   // of the event before, and its index
  uint32_t event_parent_index = 0;
  int64_t events_dropped = 0;
  SharedCounter events_recorded;  // with those that were dropped
  bool event_timer_set = false;

  // metrics
  int64_t metrics_sent_us = 0;
  bool metrics_timer_set = false;

  // logs
  std::function<void(const std::vector<DriverLine>&)> log_sink;
  std::string node_manager_last_words;  // why it ends, said just before
  std::vector<DriverLine> pending_lines;
  int retries_told = 0;  // since then
  int64_t retries_told_since_us = 0;
  std::set<std::string> told_builds;  // differences from other builds the driver has been told; at
                                      // most kMaxToldBuilds
};

// The thread's running task, for Worker::current_task() and blocked reports.
extern thread_local ExecutingTaskImpl* t_current_task;
// Whose children the tasks are that this thread submits outside of t_current_task; see
// submit_for().
extern thread_local TaskId t_submit_for;
// The parent of what this thread submits now; nil: no task.
TaskId submitting_task();

}  // namespace rt::worker
