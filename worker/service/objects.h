// The objects that this process owns or has borrowed: making them, reading them, serving them to
// borrowers, freeing them. What counts as a reference, and to whom, is the RefTable's business;
// this class carries out what the table wants.
//
// Without the mutex run: put(), put_once() and value_of(), which take it where they need it; and
// the counter of errors. Functions that take the lock as an argument release it while they wait or
// copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/proto/worker.pb.h"
#include "daemons/object_store/client/store_client.h"
#include "worker/core/ref_table.h"
#include "worker/core/value_codec.h"
#include "worker/service/content_cache.h"
#include "worker/service/copies.h"
#include "worker/service/lock.h"
#include "worker/service/notices.h"
#include "worker/service/shared.h"
#include "worker/worker.h"

namespace rt::worker {

class Pump;

class Objects final : public RefSink {
 public:
  struct Sealed {
    OwnedBytes view;
    int64_t size;
  };

  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Pump& pump;
    PeerLinks& peers;
    Notices& notices;
  };
  struct Hooks {
    // Finds out how a worker that cannot be reached has ended.
    std::function<void(const proto::WorkerAddress& worker,
                       std::function<void(proto::ExitInfo)> done)>
        ask_exit;
    // Owners have answered that they count this process or others as borrowers.
    std::function<void()> borrows_confirmed;
    // The last handle of an actor is gone.
    std::function<void(const ActorId& actor)> actor_out_of_scope;
    // The consumer takes no more items of this task's generator.
    std::function<void(const TaskId& task)> stream_dropped;
  };
  Objects(const Parts& parts, Hooks hooks);

  // Begins with an empty table of references, that of `self`.
  void reset(const WorkerId& self) REQUIRES(worker_mutex);
  RefTable& refs() const REQUIRES(worker_mutex) { return *refs_; }
  // For references that outlive this object. There is no table afterwards.
  std::unique_ptr<RefTable> take_table() REQUIRES(worker_mutex) { return std::move(refs_); }
  // Null on a node without an object store, which refuses large values.
  store::StoreClient* store() const REQUIRES(worker_mutex) { return store_.get(); }
  void set_store(std::unique_ptr<store::StoreClient> store) REQUIRES(worker_mutex) {
    store_ = std::move(store);
  }
  Copies& copies() { return copies_; }

  // Making objects.

  // put_once() makes no new object while an equal one is known.
  Result<Ref> put(const ValueParts& parts) EXCLUDES(worker_mutex) { return put(parts, nullptr); }
  Result<Ref> put_once(const ValueParts& parts) EXCLUDES(worker_mutex);
  // Makes an object with a value that is too large to be inlined.
  Result<Ref> store_large(WorkerLock& lock, const ValueParts& parts, const std::string& packed,
                          size_t size) REQUIRES(worker_mutex);
  // Writes `parts` into shared memory.
  Result<Sealed> write_to_store(WorkerLock& lock, const ObjectId& id, const WorkerId& owner,
                                const ValueParts& parts, const std::string& packed, size_t size)
      REQUIRES(worker_mutex);

  // Their values.

  void mark_ready(ObjectEntry& entry) REQUIRES(worker_mutex);
  // Sets the value and marks the entry ready; so does set_error().
  void set_blob(ObjectEntry& entry, Blob blob) REQUIRES(worker_mutex);
  void set_error(ObjectEntry& entry, const proto::ErrorValue& error) REQUIRES(worker_mutex);
  Result<Value> value_of(const Ref& ref, int64_t since_us) EXCLUDES(worker_mutex);
  // The value of an entry that is here, at `encoded`.
  Result<Value> decode(ObjectEntry& entry, Bytes encoded, Keepalive keepalive, bool shared)
      REQUIRES(worker_mutex);
  // Asks the owner of a borrowed object for its value or location, once.
  void resolve(ObjectEntry& entry) REQUIRES(worker_mutex);
  // Brings a shared object here, unless that failed since `since_us`; a view until let_go().
  void fetch(ObjectEntry& entry, int64_t since_us, Fetch purpose) REQUIRES(worker_mutex);
  // Nobody else will read what was fetched for a view.
  void let_go(std::span<const Ref> refs) REQUIRES(worker_mutex);
  // Whether the value can be read without waiting.
  bool is_local(const ObjectEntry& entry) const REQUIRES(worker_mutex);

  // Counts values that became errors, and fetches that failed; see Gets::wait_all(). The number
  // is for any thread.
  void count_error() { ++errors_stored_; }
  uint64_t errors_stored() const { return errors_stored_.load(std::memory_order_relaxed); }
  // Whether the user is told of errors that nobody has seen (RAY_IGNORE_UNHANDLED_ERRORS).
  bool reports_unseen() const { return reports_unseen_; }

  // References to them.

  std::vector<Ref> take_refs(Bytes packed, bool registered, bool register_now)
      REQUIRES(worker_mutex);
  std::string pack(std::span<const Ref> refs) const REQUIRES(worker_mutex);
  const proto::WorkerAddress& owner_of(const ObjectEntry& entry) const REQUIRES(worker_mutex);

  // Answers a borrower, as soon as the value exists.
  void serve(const proto::ObjectStatusRequest& request,
             std::function<void(const proto::ObjectStatus&)> reply) REQUIRES(worker_mutex);

  void add_borrower(const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids,
                    const WorkerId& borrower) override REQUIRES(worker_mutex);
  void remove_borrower(const proto::WorkerAddress& owner, const ObjectId& id,
                       uint32_t lent) override REQUIRES(worker_mutex);
  void free_object(ObjectEntry& entry) override REQUIRES(worker_mutex);
  void actor_out_of_scope(const ActorId& actor) override REQUIRES(worker_mutex) {
    hooks_.actor_out_of_scope(actor);
  }
  void stream_dropped(const TaskId& task) override REQUIRES(worker_mutex) {
    hooks_.stream_dropped(task);
  }

 private:
  // With `content` null a new object is made each time.
  Result<Ref> put(const ValueParts& parts, const ContentHash* content) EXCLUDES(worker_mutex);
  Ref store_small(const ValueParts& parts, const std::string& packed) REQUIRES(worker_mutex);
  ObjectId next_put_id() REQUIRES(worker_mutex);
  void owner_died(ObjectEntry& entry, const Error& why) REQUIRES(worker_mutex);
  // A borrowed object is in no store any more: finds out why and sets the error.
  void lost(ObjectEntry& entry, std::string why) REQUIRES(worker_mutex);
  void fill_status(const ObjectEntry& entry, bool want_value, proto::ObjectStatus* status) const
      REQUIRES(worker_mutex);
  void report_unseen(const ObjectEntry& entry) REQUIRES(worker_mutex);

  const Parts parts_;
  const Hooks hooks_;
  std::unique_ptr<RefTable> refs_ GUARDED_BY(worker_mutex);
  std::unique_ptr<store::StoreClient> store_ GUARDED_BY(worker_mutex);
  const bool reports_unseen_;
  std::atomic<uint64_t> errors_stored_{0};
  ContentCache contents_ GUARDED_BY(worker_mutex);
  Copies copies_;
};

}  // namespace rt::worker
