// The decisions of NodeCore, for the service, a test or the simulator to carry out. The core calls
// these methods in the middle of its work: an implementation must not call back into the core
// before it returns.
#pragma once

#include <vector>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

class NodeSink {
 public:
  virtual ~NodeSink() = default;

  // ---- to owners
  virtual void grant(OwnerId owner, const proto::LeaseGrant& grant) = 0;
  virtual void revoke(OwnerId owner, const proto::LeaseRevoke& revoke) = 0;
  virtual void redirect(OwnerId owner, const proto::LeaseRedirect& redirect) = 0;
  // To the owner, or, if the notice has a job_id, to the driver of that job, wherever it is.
  virtual void notice(OwnerId owner, const proto::LeaseNotice& notice) = 0;

  // Starts a process. The implementation answers with NodeCore::worker_spawned() or
  // worker_start_failed(). After worker_spawned() follow worker_registered(), if the process gets
  // that far, and finally worker_exited().
  virtual void spawn_worker(const WorkerId& id, const WorkerKind& kind) = 0;
  // Sends SIGKILL at once, or as soon as the process id is known.
  virtual void kill_worker(const WorkerId& id) = 0;
  // Asks a registered worker to exit (NodeClientService.Exit): after its queued work if the request
  // is graceful, otherwise at once.
  virtual void ask_exit(const WorkerId& id, const proto::KillWorkerRequest& request) = 0;
  // Answered by actor_start_done().
  virtual void start_actor(const WorkerId& id, const proto::CreateActorRequest& request) = 0;

  // ---- to the head
  // Answers all CreateActor calls that wait for (id, epoch).
  virtual void actor_created(const ActorId& id, int64_t epoch,
                             const proto::CreateActorReply& reply) = 0;
  virtual void actor_died(const proto::ActorDied& died) = 0;
  // Answers all PrepareBundles calls that wait for (group, epoch).
  virtual void bundles_prepared(const GroupId& group, int64_t epoch,
                                const proto::PrepareBundlesReply& reply) = 0;
  // A worker's process, or a driver's connection, has ended. The head, the object store and
  // callers that wait in GetWorkerExit need to know.
  virtual void worker_died(const WorkerId& id, const proto::ExitInfo& info) = 0;
  // Availability or demand differs from the last report. Called often; the implementation batches.
  virtual void resources_changed() = 0;
};

}  // namespace rt::node
