// Reference counting and ownership: which objects this process knows, and who still needs them.
//
// The creator of an object owns it. An entry lives as long as a local Ref or (for owned objects) a
// borrower is left. A borrowed entry that outlives the task that brought it is registered with its
// owner; "Reference counting" in docs/tasks.md has the one rule that this follows.
//
// Guarded by the worker's mutex, except release_last(), which any thread may call because it only
// pushes on a lock-free stack.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/recent_set.h"
#include "worker/core/object_entry.h"
#include "worker/core/ref_sink.h"

namespace rt::worker {

class RefTable {
 public:
  RefTable(RefSink& sink, const WorkerId& self);
  // No reference to an entry may be left outside of the table (is_unreferenced()), because its drop
  // would reach here.
  ~RefTable();

  // Makes the entry of a new owned object, in state kPending.
  ObjectEntry* create(const ObjectId& id);
  ObjectEntry* find(const ObjectId& id);
  // The entry of a reference that arrived from elsewhere. `registered` says that its sender has
  // told the owner about this process, which counts as one more lending. When this process is the
  // owner, it is the owned entry, or null if that has been freed already.
  ObjectEntry* borrow(const ObjectId& id, std::shared_ptr<const proto::WorkerAddress> owner,
                      bool registered);

  // The owner's side. Lendings are counted, because what a borrower returns may cross a result that
  // lends it the object again. add_borrower() is false for an unknown object.
  bool add_borrower(const ObjectId& id, const WorkerId& borrower);
  void remove_borrower(const ObjectId& id, const WorkerId& borrower, uint32_t lent);
  // The borrower's connection broke.
  void borrower_gone(const WorkerId& borrower);
  // The borrower was reported dead. Others may still be about to tell that they have lent to it.
  void borrower_died(const WorkerId& borrower);

  // Sets the function that makes some thread call drain_releases(). It is called when something
  // was dropped that matters outside of this process (shared memory, a borrow, an actor, an object
  // that holds references). It may be called in any thread, also after the table was closed.
  void set_wake(std::function<void()> wake) { wake_ = std::move(wake); }
  // Processes the entries whose last local reference was dropped. Cheap when there are none, so it
  // is called often.
  void drain_releases();
  // Goes through the entries that tasks brought and that their owners do not know of yet: forgets
  // those that nobody kept and registers the others.
  void register_kept();
  bool has_unregistered() const { return !unregistered_.empty(); }
  // Registers these with their owners, unless that was done before or this process owns them.
  void register_now(const std::vector<ObjectEntry*>& entries);
  void confirm_borrows(const std::vector<ObjectId>& ids);
  // The number of the last registration, and whether all up to one are acknowledged. A message that
  // ends a hold, such as a reply, may leave once those that were made before it are.
  uint64_t last_registration() const { return first_unconfirmed_ + unconfirmed_.size() - 1; }
  bool confirmed(uint64_t registration) const { return registration < first_unconfirmed_; }

  // Makes release_last() do nothing from here on, because the process ends or the worker was
  // stopped.
  void close();
  // The worker has ended, and only references that outlive it need the entries. Reading one of
  // them gives `error`.
  void replace_values(const Blob& error);
  // For a closed table without values: whether no reference is left, so that it may be destroyed
  // with its entries.
  bool is_unreferenced();
  size_t size() const { return entries_.size(); }
  // The number of objects that this process owns and that something refers to.
  size_t owned() const { return owned_; }
  template <class F>
  void for_each(F&& f) {
    for (auto& [id, entry] : entries_) f(*entry);
  }
  void check_invariants() const;

 private:
  friend void release_last(RefEntry* entry);
  void consider(ObjectEntry* entry);
  void destroy(ObjectEntry* entry);
  // Returns what was lent, after the registrations that were made earlier.
  void give_back(const ObjectEntry& entry);
  // Registers entries that are in no list any more with their owners.
  void tell_owners(const std::vector<ObjectEntry*>& untold);
  // Takes the entry out of unregistered_.
  void unlist(ObjectEntry* entry);
  ObjectEntry* allocate(const ObjectId& id);

  RefSink& sink_;
  const WorkerId self_;
  boost::unordered_flat_map<ObjectId, ObjectEntry*, std::hash<ObjectId>> entries_;
  std::vector<ObjectEntry*> pool_;  // Recycled entries.
  // Borrowed entries that their owners do not know of, in no order. Each knows its place, because
  // a task may bring and drop hundreds of thousands of them.
  std::vector<ObjectEntry*> unregistered_;
  // For each registration from this number on, how many of its objects are not confirmed.
  uint64_t first_unconfirmed_ = 1;
  std::deque<uint32_t> unconfirmed_;
  struct Return {
    std::shared_ptr<const proto::WorkerAddress> owner;
    ObjectId id;
    uint32_t lent;
    uint64_t after;  // The registration that it waits for.
  };
  std::deque<Return> returns_;
  size_t owned_ = 0;
  static constexpr size_t kDeadKept = 10'000;
  RecentSet<WorkerId> dead_{kDeadKept};  // No borrowers any more.
  std::atomic<RefEntry*> released_{nullptr};
  std::function<void()> wake_;
  std::atomic<bool> closed_{false};
};

}  // namespace rt::worker
