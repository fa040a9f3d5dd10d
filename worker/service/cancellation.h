// Cancellation of tasks by their owner.
#pragma once

#include "common/base/status.h"
#include "worker/core/task.h"
#include "worker/ref.h"
#include "worker/service/lock.h"

namespace rt::worker {

class ActorClient;
class LeaseClient;
class Objects;
class PeerLinks;
class Results;
class Streams;

class Cancellation {
 public:
  // All of these must outlive this object.
  Cancellation(Objects& objects, PeerLinks& peers, Streams& streams, ActorClient& actors,
               LeaseClient& leases, Results& results)
      : objects_(objects),
        peers_(peers),
        streams_(streams),
        actors_(actors),
        leases_(leases),
        results_(results) {}

  // See Worker::cancel(). Asks the owner of an object that this process has borrowed.
  Status cancel(const Ref& ref, bool force, bool recursive) REQUIRES(worker_mutex);
  // Cancels a pending task of this process. Fails with kInvalid for force on an actor's call.
  Status cancel_task(Task* task, bool force, bool recursive) REQUIRES(worker_mutex);
  // Cancels the pending tasks that a task has submitted in this process.
  void cancel_children(const TaskId& parent, bool force) REQUIRES(worker_mutex);

 private:
  Objects& objects_;
  PeerLinks& peers_;
  Streams& streams_;
  ActorClient& actors_;
  LeaseClient& leases_;
  Results& results_;
};

}  // namespace rt::worker
