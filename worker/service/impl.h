// The inside of Worker: one mutex, one PollLoop, the cores, and the connections they decide about.
// One file per concern:
//
//   startup.cc    start, registration, loss of the node-manager, stop
//   pump.h        who reads the sockets and when, and the background thread
//   head_session.h  the connection to the head
//   nodes.h       the nodes of the cluster and connections to node-managers
//   peers.h       links to other workers
//   copies.h      tells the owners of objects that copies are here
//   dispatch.cc   hands what arrives from other processes to those it is for
//   objects.h     put, reading values, serving them to borrowers, freeing
//   submit.cc     tasks out, replies in, cancellation by the owner
//   actors.cc     actors as their callers see them; actor_creations.h has their creation
//   groups.cc     placement groups
//   task_queue.h  tasks in, until they start; arguments.cc has their arguments in object stores
//   execution.h   runs tasks and answers them, see execute.cc
//   departure.h   how a worker comes to its end
//   streams.h     generators at their owner
//   notices.h     lines for the user: logs, notices, unhandled errors
//   recorder.h    task events and metrics
//   cluster.cc    blocking calls to the head
//   listing.cc    lists of objects and tasks for the state API
//
// Threads: methods marked (L) must be called with `mutex` held. Callbacks of the loop run with it
// held.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/net/poll_loop.h"
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
#include "worker/service/copies.h"
#include "worker/service/departure.h"
#include "worker/service/execution.h"
#include "worker/service/head_session.h"
#include "worker/service/link.h"
#include "worker/service/nodes.h"
#include "worker/service/notices.h"
#include "worker/service/objects.h"
#include "worker/service/peers.h"
#include "worker/service/process_services.h"
#include "worker/service/pump.h"
#include "worker/service/recorder.h"
#include "worker/service/self.h"
#include "worker/service/streams.h"
#include "worker/service/task_queue.h"
#include "worker/worker.h"

namespace rt::worker {

class ExecutingTaskImpl;

// A return of a reply, or an item of a generator, as read from the wire.
struct Return {
  bool in_store = false;
  Bytes value;  // The encoded value or, for one in the store, its packed references.
  int64_t size = 0;
};
Return read_return(wire::Reader& reader);

class ActorCreations;
class Groups;
class HeldFrames;
class NodeClient;
class WorkerRpc;

struct Worker::Impl : public SubmitComm, public ActorComm {
  explicit Impl(Options options);
  ~Impl() override;

  using Lock = Pump::Lock;

  // Implemented in startup.cc.

  Status start();
  const std::string& runtime_env() const {
    return options.is_driver ? options.job_config.runtime_env() : options.runtime_env;
  }
  Status finish_start();  // (L)
  void stop();
  void on_node_manager_lost(const Error& why);  // (L)
  // (L) Whether others need this process even though it has nothing to execute.
  bool is_needed() const;

  // Implemented in dispatch.cc.

  void link_opened(const std::shared_ptr<Link>& link);                         // (L)
  void link_closed(const std::shared_ptr<Link>& link, bool peer_gone);         // (L)
  void on_flat(const std::shared_ptr<Link>& link, uint32_t type, Bytes body);  // (L)
  void on_head_event(const proto::HeadEvent& event);                           // (L)

  // Implemented in submit.cc.

  Status build_args(Lock& lock, Task& task, std::span<const Arg> args);
  Status submit(const Template* function, std::span<const Arg> args, std::vector<Ref>* returns);
  void make_returns(Task& task, std::vector<Ref>* returns);  // (L)
  // (L) Calls `ready` once when the last unready argument has become ready, unless the task was
  // dropped before. False: all are ready, and `ready` is not called.
  bool wait_for_args(Task* task, std::function<void()> ready);
  void task_ready(Task* task);  // (L)
  // (L) If an argument is an error, fails the task with it and returns true.
  bool args_failed(Task* task);
  TaskId parent_or_driver(const TaskId& parent) const;
  TaskId parent_of(const Task& task) const { return parent_or_driver(task.parent); }
  // (L) Appends the task to the connection's frame, preceded by its template and parent where the
  // peer does not have them.
  void write_task(Link& link, const Task& task);
  // (L) Called before the first task on a connection.
  void announce_recording(Link& link);
  void write_gpus(Link& link, const std::vector<std::string>& names);  // (L)
  void on_replies(const std::shared_ptr<Link>& link, Bytes body);      // (L)
  // (L) Null when no such task is in flight.
  Task* task_in_flight(Link& link, uint32_t seq);
  // (L) The node of the link's worker, where that worker seals results.
  ObjectLocation location_of(const Link& link);
  void complete(Task* task, const ObjectLocation& node, std::span<const Return> returns,
                wire::TaskStatus status);  // (L)
  // (L) Stores a return and marks it ready.
  void store_return(ObjectEntry& entry, const Return& value, const ObjectLocation& node,
                    bool cancelled);
  // (L) Takes over the task, which was never sent to a process, and records its failure.
  void fail_with_blob(Task* task, const Blob& error);
  // (L) Takes over the task.
  void settle_with_error(Task* task, const Blob& error);
  void drop_task(Task* task);  // (L)
  Status cancel(const Ref& ref, bool force, bool recursive);
  // (L) Cancels a pending task of this process. Fails with kInvalid for force on an actor's call.
  Status cancel_task(Task* task, bool force, bool recursive);
  // (L) Kills the lease's worker after a while, if the task is still in flight.
  void end_worker_of(uint64_t lease_key, const TaskId& id);
  void cancel_children(const TaskId& parent, bool force);  // (L)
  // (L) The pending task that makes the object; null when there is none.
  Task* producer_of(const ObjectEntry* entry) const;
  // The methods of SubmitComm. fail_task() and attempt_failed() belong to ActorComm as well.
  void send_demand(const NodeKey& node, const SchedulingClass& c, int want, int64_t backlog,
                   const std::string& what, uint64_t last_answer) override;
  void connect_lease(Lease& lease) override;
  void push_task(Lease& lease, Task& task) override;
  void take_back(Lease& lease, int count) override;
  void return_lease(Lease& lease, bool worker_failed) override;
  void ask_exit(Lease& lease) override;
  // Asks the node of a worker that cannot be reached how the worker ended.
  void ask_exit(const proto::WorkerAddress& worker, const NodeKey& node,
                std::function<void(proto::ExitInfo)> done);
  void fail_task(Task* task, const proto::ErrorValue& error) override;
  void attempt_failed(const Task& task, const proto::ErrorValue& error) override;

  // Implemented in actors.cc.

  void subscribe_actor(const ActorId& id) override;
  bool forget_actor(const ActorId& id) override;
  // (L) Whether this process has a handle, or made the actor and the actor has not ended.
  bool has_handle(const ActorId& id);
  void connect_actor(ActorLink& actor) override;
  void push_call(ActorLink& actor, Task& task) override;
  void window_full(const ActorLink& actor, const ActorLink::Lane& lane, bool first,
                   bool tell) override;
  void ask_again(const ActorId& id, int64_t delay_us) override;
  void query_actor(const ActorId& id);  // (L)
  Result<Actor> create_actor(ActorOptions options, std::span<const Arg> args);
  Status submit_method(const ActorId& actor, const Template* method, const MethodOptions& options,
                       std::span<const Arg> args, std::vector<Ref>* returns);
  void actor_out_of_scope(const ActorId& actor);

  void adopt_job(const proto::JobConfig& job);  // (L)

  // Implemented in cluster.cc.

  void settle_leases();
  // Nodes that leases were returned to since the last settle_leases().
  std::set<NodeKey> returned_at;

  // Implemented in listing.cc.

  void list_objects(proto::ObjectRecords* out);  // (L)
  void list_tasks(proto::TaskRecords* out);      // (L)

  Options options;
  Settings& settings;
  Context context;
  Self self;

  Notices notices;
  std::mutex mutex;
  std::unique_ptr<net::PollLoop> loop;

  Pump pump;
  std::atomic<bool> stopping{false};
  bool connected = false;

  // Connections.
  // Declared before the connections that use them, so that they are destroyed after those.
  std::unique_ptr<ProcessServices> process_services;
  std::unique_ptr<rpc::Server> server;
  std::unique_ptr<NodeClient> node_client;
  std::unique_ptr<WorkerRpc> worker_rpc;
  Nodes nodes;
  HeadSession head;
  Peers peers;
  Copies copies;

  // The cores and what they work on.
  std::unique_ptr<RefTable> refs;
  std::unique_ptr<Submitter> submitter;
  std::unique_ptr<ActorCalls> actors;
  TaskPool tasks;
  std::unique_ptr<store::StoreClient> store;
  std::vector<std::unique_ptr<Template>> templates;
  std::unordered_map<std::string, Template*> template_by_bytes;
  Rng rng;
  uint64_t next_task_unique = 0;
  struct TimersSet {
    bool turns = false, waiting = false;  // The timers of waiting.h.
  } timers_set;
  Objects objects;
  Streams streams;
  Recorder recorder;
  std::unique_ptr<ActorCreations> creations;
  std::unique_ptr<Groups> groups;

  // Execution.
  Departure departure;
  TaskQueue queue;
  Execution execution;
  std::unique_ptr<HeldFrames> frames;  // To the owners of tasks.
};

// The task that this thread executes, for Worker::current_task() and reports of blocked workers.
extern thread_local ExecutingTaskImpl* t_current_task;
// The parent of the tasks that this thread submits while t_current_task is null; see submit_for().
extern thread_local TaskId t_submit_for;
// The parent of the tasks that this thread submits at the moment; nil when there is none.
TaskId submitting_task();

}  // namespace rt::worker
