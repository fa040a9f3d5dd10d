// What the core decides, for the service, a test or the simulator to carry out. Methods must not
// call back into the core.
#pragma once

#include <vector>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

class NodeSink {
 public:
  virtual ~NodeSink() = default;

  // to owners
  virtual void grant(OwnerId owner, const proto::LeaseGrant& grant) = 0;
  virtual void revoke(OwnerId owner, const proto::LeaseRevoke& revoke) = 0;
  virtual void redirect(OwnerId owner, const proto::LeaseRedirect& redirect) = 0;
  virtual void notice(OwnerId owner, const proto::LeaseNotice& notice) = 0;

  // Answered by worker_spawned() or worker_start_failed(), then worker_registered(), finally
  // worker_exited().
  virtual void spawn_worker(const WorkerId& id, const WorkerKind& kind) = 0;
  // SIGKILL, at once; also for one whose process id is not known yet.
  virtual void kill_worker(const WorkerId& id) = 0;
  // Asks a registered worker to leave after its queued work (NodeClientService.Exit).
  virtual void ask_exit(const WorkerId& id, const proto::KillWorkerRequest& request) = 0;
  // Answered by actor_start_done().
  virtual void start_actor(const WorkerId& id, const proto::CreateActorRequest& request) = 0;

  // to the head
  virtual void actor_created(
      const ActorId& id, int64_t epoch,
      const proto::CreateActorReply& reply) = 0;  // answers every CreateActor of (id, epoch)
  virtual void actor_died(const proto::ActorDied& died) = 0;
  // A worker's process is gone, or a driver's connection: for the head, the object store, and
  // whoever asked GetWorkerExit.
  virtual void worker_died(const WorkerId& id, const proto::ExitInfo& info) = 0;
  // Availability or demand differ from what was last reported; many changes may come in a row.
  virtual void resources_changed() = 0;
};

}  // namespace rt::node
