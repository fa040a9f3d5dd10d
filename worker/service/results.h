// How tasks of this process end: replies in, results and errors into the objects that wait for
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "worker/core/object_entry.h"
#include "worker/core/task.h"
#include "worker/core/wire.h"
#include "worker/service/link.h"
#include "worker/service/lock.h"

namespace rt::worker {

// A return of a reply, or an item of a generator, as read from the wire.
struct Return {
  bool in_store = false;
  Bytes value;  // The encoded value or, for one in the store, its packed references.
  int64_t size = 0;
};
Return read_return(wire::Reader& reader);

class ActorClient;
class LeaseClient;
class Notices;
class Objects;
class Recorder;
class Streams;
class Submission;

class Results {
 public:
  // All of these must outlive this object.
  Results(Submission& submission, ActorClient& actors, LeaseClient& leases, Objects& objects,
          Streams& streams, Recorder& recorder, Notices& notices)
      : submission_(submission),
        actors_(actors),
        leases_(leases),
        objects_(objects),
        streams_(streams),
        recorder_(recorder),
        notices_(notices) {}

  void on_replies(const std::shared_ptr<Link>& link, Bytes body) REQUIRES(worker_mutex);
  // Null when no such task is in flight.
  Task* task_in_flight(const Link& link, uint32_t seq) REQUIRES(worker_mutex);
  // The node of the link's worker, where that worker seals results.
  ObjectLocation location_of(const Link& link) REQUIRES(worker_mutex);
  // Stores a return and marks it ready.
  void store_return(ObjectEntry& entry, const Return& value, const ObjectLocation& node,
                    bool cancelled) REQUIRES(worker_mutex);

  // All of these take over the task. fail() and fail_unsent() also record its failure; the latter
  // is for one that was never sent to a process.
  void fail(Task* task, const proto::ErrorValue& error) REQUIRES(worker_mutex);
  void fail_unsent(Task* task, const Blob& error) REQUIRES(worker_mutex);
  void drop(Task* task) REQUIRES(worker_mutex);
  // An attempt has failed, and another one follows.
  void attempt_failed(const Task& task, const proto::ErrorValue& error) REQUIRES(worker_mutex);

 private:
  void complete(Task* task, const ObjectLocation& node, std::span<const Return> returns,
                wire::TaskStatus status) REQUIRES(worker_mutex);
  void settle_with_error(Task* task, const Blob& error) REQUIRES(worker_mutex);

  Submission& submission_;
  ActorClient& actors_;
  LeaseClient& leases_;
  Objects& objects_;
  Streams& streams_;
  Recorder& recorder_;
  Notices& notices_;
};

}  // namespace rt::worker
