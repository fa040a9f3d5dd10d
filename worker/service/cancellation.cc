#include "worker/service/cancellation.h"

#include "common/proto/worker.pb.h"
#include "common/rpc/client.h"
#include "worker/core/death.h"
#include "worker/core/wire.h"
#include "worker/service/actor_client.h"
#include "worker/service/lease_client.h"
#include "worker/service/objects.h"
#include "worker/service/peer_links.h"
#include "worker/service/streams.h"
#include "worker/service/submission.h"

namespace rt::worker {

Status Cancellation::cancel(const Ref& ref, bool force, bool recursive) {
  auto& entry = entry_of(ref);
  if (Task* task = Submission::producer_of(&entry)) return cancel_task(task, force, recursive);
  if (!entry.owned && !entry.ready) {
    proto::CancelTask request;
    request.set_task_id(task_of(entry.id).binary());
    request.set_force(force);
    request.set_recursive(recursive);
    peers_.with(*entry.details().owner, [request](Result<std::shared_ptr<Link>> link) {
      if (link)
        rpc::call(*(*link)->connection, &proto::WorkerService::Stub::Cancel, request, 30'000'000,
                  [](Result<proto::CancelReply>) {});
    });
  }
  return {};
}

Status Cancellation::cancel_task(Task* task, bool force, bool recursive) {
  auto tell = [&](TaskChannel* channel) {
    if (!channel) return;
    Link& link = link_of(*channel);
    wire::Writer writer(link.connection->begin_flat(wire::kCancel));
    writer.fields(task->seq, static_cast<uint8_t>((force ? wire::kCancelForce : 0) |
                                                  (recursive ? wire::kCancelRecursive : 0)));
    link.connection->end_flat();
    link.connection->flush();
  };
  if (GeneratorStream* stream = streams_.find(task->id)) stream->cancel();
  if (!task->function->scheduling_class) {
    if (force)
      return make_error(
          Code::kInvalid,
          "force=True is not supported for actor tasks: use ray.kill to end the actor");
    ActorLink& actor = actors_.calls().link(actor_of(task->id));
    if (actors_.calls().cancel(actor, task)) tell(actor.channel);
    return {};
  }
  const Submitter::Cancelled cancelled = leases_.submitter().cancel(task);
  if (cancelled.lease) {
    tell(cancelled.lease->channel);
    if (force) leases_.end_worker_of(cancelled.lease->key, task->id);
  }
  if (!cancelled.submitted) results_.fail(task, cancelled_error(*task));
  return {};
}

void Cancellation::cancel_children(const TaskId& parent, bool force) {
  // Cancelling one task may end others.
  std::vector<Ref> results;
  // Entries that nobody refers to any more may name tasks that are gone.
  objects_.refs().drain_releases();
  objects_.refs().for_each([&](ObjectEntry& entry) {
    Task* task = Submission::producer_of(&entry);
    if (task && task->parent == parent && task->returns.front().entry() == &entry)
      results.push_back(task->returns.front());
  });
  for (const Ref& ref : results) {
    Task* task = Submission::producer_of(&entry_of(ref));
    if (task) (void)cancel_task(task, force && task->function->scheduling_class, true);
  }
}

}  // namespace rt::worker
