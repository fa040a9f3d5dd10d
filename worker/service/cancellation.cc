#include "worker/service/cancellation.h"

#include "worker/core/death.h"
#include "worker/service/impl.h"

namespace rt::worker {

Status Cancellation::cancel(const Ref& ref, bool force, bool recursive) {
  Worker::Impl::Lock lock(impl_.mutex);
  auto& entry = *static_cast<ObjectEntry*>(ref.entry());
  Status status;
  if (Task* task = Submission::producer_of(&entry)) {
    status = cancel_task(task, force, recursive);
  } else if (!entry.owned && !entry.ready) {
    proto::CancelTask request;
    request.set_task_id(task_of(entry.id).binary());
    request.set_force(force);
    request.set_recursive(recursive);
    impl_.peers.with(*entry.details().owner, [request](Result<std::shared_ptr<Link>> link) {
      if (link)
        rpc::call(*(*link)->connection, &proto::WorkerService::Stub::Cancel, request, 30'000'000,
                  [](Result<proto::CancelReply>) {});
    });
  }
  impl_.loop->flush_all();
  // Another thread may wait for the results that have just failed.
  impl_.pump.wake_reader();
  impl_.pump.wake_followers();
  return status;
}

Status Cancellation::cancel_task(Task* task, bool force, bool recursive) {
  auto tell = [&](void* connection) {
    if (!connection) return;
    Link& link = *static_cast<Link*>(connection);
    wire::Writer writer(link.connection->begin_flat(wire::kCancel));
    writer.number(task->seq);
    writer.number(static_cast<uint8_t>((force ? wire::kCancelForce : 0) |
                                       (recursive ? wire::kCancelRecursive : 0)));
    link.connection->end_flat();
    link.connection->flush();
  };
  if (GeneratorStream* stream = impl_.streams.find(task->id)) stream->cancel();
  if (!task->function->scheduling_class) {
    if (force)
      return make_error(
          Code::kInvalid,
          "force=True is not supported for actor tasks: use ray.kill to end the actor");
    ActorLink& actor = impl_.actor_client.calls().link(actor_of(task->id));
    if (impl_.actor_client.calls().cancel(actor, task)) tell(actor.connection);
    return {};
  }
  bool waits_for_args;
  if (Lease* lease = impl_.leases.submitter().cancel(task, &waits_for_args)) {
    tell(lease->state == Lease::State::kReady ? lease->connection : nullptr);
    if (force) impl_.leases.end_worker_of(lease->key, task->id);
  }
  if (waits_for_args) impl_.submission.results().fail(task, cancelled_error(*task));
  return {};
}

void Cancellation::cancel_children(const TaskId& parent, bool force) {
  // Cancelling one task may end others.
  std::vector<Ref> results;
  // Entries that nobody refers to any more may name tasks that are gone.
  impl_.objects.refs().drain_releases();
  impl_.objects.refs().for_each([&](ObjectEntry& entry) {
    Task* task = Submission::producer_of(&entry);
    if (task && task->parent == parent && task->returns.front().entry() == &entry)
      results.push_back(task->returns.front());
  });
  for (const Ref& ref : results) {
    Task* task = Submission::producer_of(static_cast<ObjectEntry*>(ref.entry()));
    if (task) (void)cancel_task(task, force && task->function->scheduling_class, true);
  }
}

}  // namespace rt::worker
