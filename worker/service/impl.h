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
//   submission.h  tasks out, see submit.cc; dependencies.cc has those that wait for arguments
//   results.h     replies in, and how tasks end
//   leases.h      what the submitter wants of node-managers and workers
//   cancellation.h  cancellation by the owner
//   waiting.h     how many tasks wait, for `rayctl status`
//   actor_client.h  actors as their callers see them, see actors.cc; actor_creations.h has their
//                 creation
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
#include "daemons/object_store/client/store_client.h"
#include "worker/core/actor_calls.h"
#include "worker/core/generator_stream.h"
#include "worker/core/ref_table.h"
#include "worker/core/submitter.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"
#include "worker/service/actor_client.h"
#include "worker/service/cancellation.h"
#include "worker/service/copies.h"
#include "worker/service/execution.h"
#include "worker/service/head_session.h"
#include "worker/service/leases.h"
#include "worker/service/link.h"
#include "worker/service/nodes.h"
#include "worker/service/notices.h"
#include "worker/service/objects.h"
#include "worker/service/peers.h"
#include "worker/service/pump.h"
#include "worker/service/recorder.h"
#include "worker/service/results.h"
#include "worker/service/self.h"
#include "worker/service/services.h"
#include "worker/service/streams.h"
#include "worker/service/submission.h"
#include "worker/service/waiting.h"
#include "worker/worker.h"

namespace rt::worker {

class ExecutingTaskImpl;

class Groups;

struct Worker::Impl {
  explicit Impl(Options options);
  ~Impl();

  using Lock = Pump::Lock;

  // Implemented in startup.cc.

  Status start();
  const std::string& runtime_env() const {
    return options.is_driver ? options.job_config.runtime_env() : options.runtime_env;
  }
  // (L) The steps of start(): to the node-manager, registration there, and what its reply says.
  Status connect(Lock& lock, int64_t deadline_us);
  Result<proto::RegisterWorkerReply> enroll(Lock& lock);
  void registered(const proto::RegisterWorkerReply& reply);
  Status finish_start();
  void stop();
  void on_node_manager_lost(const Error& why);  // (L)
  // (L) Whether others need this process even though it has nothing to execute.
  bool is_needed() const;

  // Implemented in dispatch.cc.

  void link_opened(const std::shared_ptr<Link>& link);                         // (L)
  void link_closed(const std::shared_ptr<Link>& link, bool peer_gone);         // (L)
  void on_flat(const std::shared_ptr<Link>& link, uint32_t type, Bytes body);  // (L)
  void on_head_event(const proto::HeadEvent& event);                           // (L)

  // Implemented in execute.cc.

  void adopt_job(const proto::JobConfig& job);  // (L)

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
  Services services;
  Nodes nodes;
  HeadSession head;
  Peers peers;
  Copies copies;

  // The cores and what they work on.
  std::unique_ptr<RefTable> refs;
  std::unique_ptr<store::StoreClient> store;
  Rng rng;
  std::unique_ptr<Groups> groups;
  Objects objects;
  Streams streams;
  Submission submission;
  Results results;
  Leases leases;
  Cancellation cancellation;
  WaitingReport waiting;
  Recorder recorder;
  ActorClient actor_client;

  // The executing half.
  Execution execution;
};

// The task that this thread executes, for Worker::current_task() and reports of blocked workers.
extern thread_local ExecutingTaskImpl* t_current_task;
// The parent of the tasks that this thread submits while t_current_task is null; see submit_for().
extern thread_local TaskId t_submit_for;
// The parent of the tasks that this thread submits at the moment; nil when there is none.
TaskId submitting_task();

}  // namespace rt::worker
