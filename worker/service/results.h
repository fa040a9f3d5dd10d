// How tasks of this process end: replies in, results and errors into the objects that wait for
// them.
//
// All methods are called with the worker's mutex held.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "worker/core/object_entry.h"
#include "worker/core/task.h"
#include "worker/core/wire.h"
#include "worker/service/link.h"
#include "worker/worker.h"

namespace rt::worker {

// A return of a reply, or an item of a generator, as read from the wire.
struct Return {
  bool in_store = false;
  Bytes value;  // The encoded value or, for one in the store, its packed references.
  int64_t size = 0;
};
Return read_return(wire::Reader& reader);

class Results {
 public:
  // `impl` must outlive this object.
  explicit Results(Worker::Impl& impl) : impl_(impl) {}

  void on_replies(const std::shared_ptr<Link>& link, Bytes body);
  // Null when no such task is in flight.
  Task* task_in_flight(const Link& link, uint32_t seq);
  // The node of the link's worker, where that worker seals results.
  ObjectLocation location_of(const Link& link);
  // Stores a return and marks it ready.
  void store_return(ObjectEntry& entry, const Return& value, const ObjectLocation& node,
                    bool cancelled);

  // All of these take over the task. fail() and fail_unsent() also record its failure; the latter
  // is for one that was never sent to a process.
  void fail(Task* task, const proto::ErrorValue& error);
  void fail_unsent(Task* task, const Blob& error);
  void drop(Task* task);
  // An attempt has failed, and another one follows.
  void attempt_failed(const Task& task, const proto::ErrorValue& error);

 private:
  void complete(Task* task, const ObjectLocation& node, std::span<const Return> returns,
                wire::TaskStatus status);
  void settle_with_error(Task* task, const Blob& error);

  Worker::Impl& impl_;
};

}  // namespace rt::worker
