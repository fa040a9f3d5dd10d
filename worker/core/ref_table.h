// Reference counting and ownership: which objects this process knows, who still needs them.
//
// The creator of an object owns it. An entry lives while a local Ref or (owned) a borrower is left.
// A borrowed entry that outlives the task that brought it is registered with its owner; see
// "Reference counting" in docs/architecture.md for the one rule.
//
// Pure: no sockets, no clocks. Guarded by the worker's mutex; release_last() (any thread) only
// pushes on a lock-free stack.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/core/object_entry.h"

namespace rt::worker {

// What the table decides. Implemented by the service, recorded by tests.
class RefComm {
 public:
  virtual ~RefComm() = default;
  // Tell `owner` that `borrower` counts these objects; confirm_borrows() when it answered.
  virtual void add_borrower(const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids,
                            const WorkerId& borrower) = 0;
  virtual void remove_borrower(const proto::WorkerAddress& owner, const ObjectId& id) = 0;
  // An owned object is gone: free its copies.
  virtual void free_object(ObjectEntry& entry) = 0;
  virtual void actor_out_of_scope(const ActorId& actor) = 0;
  // Nobody takes items of this task's generator any more.
  virtual void stream_dropped(const TaskId& task) = 0;
};

class RefTable {
 public:
  RefTable(RefComm& comm, const WorkerId& self);
  ~RefTable();

  // A new owned object in state kPending.
  ObjectEntry* create(const ObjectId& id);
  ObjectEntry* find(const ObjectId& id);
  // The entry of a reference that arrived from elsewhere; `registered` when its sender has told the
  // owner about us. Our own id as owner: the owned entry, or null when it is gone already.
  ObjectEntry* borrow(const ObjectId& id, std::shared_ptr<const proto::WorkerAddress> owner,
                      bool registered);

  // Owner side.
  bool add_borrower(const ObjectId& id, const WorkerId& borrower);  // false: unknown object
  void remove_borrower(const ObjectId& id, const WorkerId& borrower);
  void borrower_gone(const WorkerId& borrower);  // its connection broke or it was reported dead

  // `wake()` leads to drain_releases(): it is called, from any thread, also after this has ended
  // its work, when something others care for was dropped (shared memory, a borrow, an actor, what
  // holds references).
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }
  // Looks at entries whose last local reference was dropped. Cheap when there are none. Call often.
  void drain_releases();
  // Entries brought by tasks and not yet known to their owners: forgets those nobody kept,
  // registers the others. Returns the number of registrations whose answers are outstanding (0: a
  // reply may leave now).
  int register_kept();
  bool has_unregistered() const { return !unregistered_.empty(); }
  void register_now(ObjectEntry* entry);
  void confirm_borrows(const std::vector<ObjectId>& ids);
  int outstanding_registrations() const { return outstanding_; }

  // From now on release_last() does nothing: the process ends or the worker was stopped.
  void close();
  // The worker has ended: only references that outlive it need the entries. Who still uses one gets
  // `error`.
  void end_values(const Blob& error);
  // Of a closed table: whether it may be destroyed with its entries, as no reference is left.
  bool is_forgotten();
  size_t size() const { return entries_.size(); }
  size_t owned() const { return owned_; }  // objects this process owns and somebody refers to
  template <class F>
  void for_each(F&& f) {
    for (auto& [id, entry] : entries_) f(*entry);
  }
  void check_invariants() const;

 private:
  friend void release_last(RefEntry* entry);
  void consider(ObjectEntry* entry);
  void destroy(ObjectEntry* entry);
  ObjectEntry* allocate(const ObjectId& id);

  RefComm& comm_;
  const WorkerId self_;
  boost::unordered_flat_map<ObjectId, ObjectEntry*, std::hash<ObjectId>> entries_;
  std::vector<ObjectEntry*> pool_;  // recycled entries
  std::vector<ObjectEntry*> unregistered_;
  int outstanding_ = 0;
  size_t owned_ = 0;
  std::atomic<RefEntry*> released_{nullptr};
  std::function<void()> wake_;
  std::atomic<bool> closed_{false};
  bool unreferenced_ = false;  // is_forgotten() said so
};

}  // namespace rt::worker
