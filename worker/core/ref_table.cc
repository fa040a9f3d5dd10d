#include "worker/core/ref_table.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace rt::worker {

Blob copy_blob(Bytes bytes) {
  auto data = std::make_shared_for_overwrite<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), data.get());
  return {std::move(data), bytes.size()};
}

constinit const ObjectDetails ObjectEntry::kNoDetails;

namespace {

using Borrow = ObjectDetails::BorrowState;

constexpr size_t kPoolKept = 65'536;    // Recycled entries.
constexpr size_t kMostAtOnce = 65'536;  // Borrows in a message to their owner, which has a limit.

// Whether dropping this entry matters outside of this process or must be reported: shared memory,
// borrows, actors, references inside, a failure that nobody has seen. A plain small value can wait
// until this process does something anyway.
bool matters_elsewhere(const ObjectEntry& entry) {
  if (!entry.owned || entry.kind != ObjectEntry::Kind::kObject) return true;
  ObjectState state = entry.state.load(std::memory_order_acquire);
  return state == ObjectState::kInStore ||
         (state == ObjectState::kInMemory && (!entry.details().contained.empty() |
                                              entry.unseen_error.load(std::memory_order_relaxed)));
}

}  // namespace

void release_last(RefEntry* entry) {
  RefTable* table = entry->table;
  if (table->closed_.load(std::memory_order_acquire)) {
    // From here on the table may destroy the entry at any time.
    entry->local_refs.fetch_sub(RefEntry::kQueued, std::memory_order_acq_rel);
    return;
  }
  // Decided before the push, after which the entry may be destroyed. Everything that holders wrote
  // is visible in the thread that drops the last reference.
  bool wake = matters_elsewhere(*static_cast<ObjectEntry*>(entry));
  RefEntry* head = table->released_.load(std::memory_order_relaxed);
  do {
    entry->next_queued = head;
  } while (!table->released_.compare_exchange_weak(head, entry, std::memory_order_release,
                                                   std::memory_order_relaxed));
  if (wake && table->wake_) table->wake_();
}

RefTable::RefTable(RefSink& sink, const WorkerId& self) : sink_(sink), self_(self) {}

RefTable::~RefTable() {
  // Entries that borrowers keep, or that a task brought, may still be here, and references inside
  // one of them may be all that keeps another. Nobody is told any more.
  close();
  for (auto& [id, entry] : entries_) entry->take_details();
  RT_CHECK(is_unreferenced());
  for (auto& [id, entry] : entries_) delete entry;
  for (ObjectEntry* entry : pool_) delete entry;
}

void RefTable::replace_values(const Blob& error) {
  for (auto& [id, entry] : entries_) {
    if (entry->has_details()) {
      ObjectDetails& details = entry->mutable_details();
      details.waiters.clear();
      details.contained.clear();
      details.mapped = {};
    }
    if (entry->kind != ObjectEntry::Kind::kObject) continue;
    entry->blob = error;
    entry->size = static_cast<int64_t>(error.size);
    entry->unseen_error = false;
    entry->state = ObjectState::kInMemory;
    entry->ready.store(true, std::memory_order_release);
  }
}

bool RefTable::is_unreferenced() {
  while (RefEntry* list = released_.exchange(nullptr, std::memory_order_acquire)) {
    while (list)
      std::exchange(list, list->next_queued)
          ->local_refs.fetch_sub(RefEntry::kQueued, std::memory_order_acq_rel);
  }
  return std::none_of(entries_.begin(), entries_.end(), [](const auto& at) {
    return at.second->local_refs.load(std::memory_order_acquire) != 0;
  });
}

ObjectEntry* RefTable::allocate(const ObjectId& id) {
  ObjectEntry* entry;
  if (pool_.empty()) {
    entry = new ObjectEntry;
    entry->table = this;
  } else {
    entry = pool_.back();
    pool_.pop_back();
  }
  entry->id = id;
  return entry;
}

ObjectEntry* RefTable::create(const ObjectId& id) {
  ObjectEntry* entry = allocate(id);
  entries_.emplace(id, entry);
  ++owned_;
  return entry;
}

ObjectEntry* RefTable::find(const ObjectId& id) {
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : it->second;
}

ObjectEntry* RefTable::borrow(const ObjectId& id, std::shared_ptr<const proto::WorkerAddress> owner,
                              bool registered) {
  ObjectEntry* entry = find(id);
  if (entry) {
    if (!entry->owned && registered) {
      ObjectDetails::Borrow& borrow = entry->mutable_details().borrow;
      ++borrow.lent;
      if (borrow.state == Borrow::kUnregistered) {
        unlist(entry);
        borrow.state = Borrow::kRegistered;
      }
    }
    return entry;
  }
  if (owner->worker_id() == self_.view()) return nullptr;
  entry = create(id);
  entry->owned = false;
  --owned_;
  ObjectDetails& details = entry->mutable_details();
  details.owner = std::move(owner);
  if (registered) {
    details.borrow.state = Borrow::kRegistered;
    details.borrow.lent = 1;
  } else {
    details.borrow.place = static_cast<uint32_t>(unregistered_.size());
    unregistered_.push_back(entry);
  }
  return entry;
}

void RefTable::unlist(ObjectEntry* entry) {
  ObjectEntry* last = unregistered_.back();
  const uint32_t place = entry->details().borrow.place;
  unregistered_[place] = last;
  last->mutable_details().borrow.place = place;
  unregistered_.pop_back();
}

bool RefTable::add_borrower(const ObjectId& id, const WorkerId& borrower) {
  ObjectEntry* entry = find(id);
  if (!entry || !entry->owned) return false;
  if (dead_.contains(borrower)) return true;
  auto& borrowers = entry->mutable_details().borrowers;
  auto known = std::find_if(borrowers.begin(), borrowers.end(),
                            [&](const auto& known) { return known.id == borrower; });
  if (known == borrowers.end()) known = borrowers.insert(known, {.id = borrower});
  ++known->lent;
  return true;
}

void RefTable::remove_borrower(const ObjectId& id, const WorkerId& borrower, uint32_t lent) {
  ObjectEntry* entry = find(id);
  if (!entry || !entry->owned) return;
  std::erase_if(entry->mutable_details().borrowers, [&](ObjectDetails::Borrower& known) {
    if (known.id != borrower) return false;
    known.lent -= std::min(known.lent, lent);
    return known.lent == 0;
  });
  consider(entry);
}

void RefTable::borrower_gone(const WorkerId& borrower) {
  std::vector<ObjectEntry*> touched;
  for (auto& [id, entry] : entries_) {
    if (entry->details().borrowers.empty()) continue;
    if (std::erase_if(entry->mutable_details().borrowers,
                      [&](const auto& known) { return known.id == borrower; }) > 0)
      touched.push_back(entry);
  }
  for (ObjectEntry* entry : touched) consider(entry);
}

void RefTable::borrower_died(const WorkerId& borrower) {
  dead_.add(borrower);
  borrower_gone(borrower);
}

void RefTable::drain_releases() {
  // Destroying an entry may drop references inside it, which arrive on the same stack.
  while (RefEntry* list = released_.exchange(nullptr, std::memory_order_acquire)) {
    while (list) {
      auto* entry = static_cast<ObjectEntry*>(list);
      list = list->next_queued;
      entry->local_refs.fetch_sub(RefEntry::kQueued, std::memory_order_acq_rel);
      consider(entry);
    }
  }
}

void RefTable::consider(ObjectEntry* entry) {
  if (entry->local_refs.load(std::memory_order_acquire) != 0) return;
  if (entry->owned) {
    if (entry->details().borrowers.empty()) destroy(entry);
    return;
  }
  switch (entry->details().borrow.state) {
    case Borrow::kUnregistered: unlist(entry); break;
    case Borrow::kRegistering: return;  // confirm_borrows() calls this again.
    case Borrow::kRegistered: give_back(*entry); break;
  }
  destroy(entry);
}

void RefTable::give_back(const ObjectEntry& entry) {
  const ObjectDetails& details = entry.details();
  if (unconfirmed_.empty())
    return sink_.remove_borrower(*details.owner, entry.id, details.borrow.lent);
  returns_.push_back({details.owner, entry.id, details.borrow.lent, last_registration()});
}

void RefTable::destroy(ObjectEntry* entry) {
  entries_.erase(entry->id);
  if (entry->owned) {
    --owned_;
    if (entry->kind == ObjectEntry::Kind::kObject) {
      sink_.free_object(*entry);
    } else if (entry->kind == ObjectEntry::Kind::kActorHandle) {
      sink_.actor_out_of_scope(actor_of(task_of(entry->id)));
    } else {
      sink_.stream_dropped(task_of(entry->id));
    }
  }
  // Resets the entry to what allocate() expects. The details are taken out first: dropping the
  // references inside may re-enter release_last(), but never this function.
  const std::unique_ptr<ObjectDetails> details = entry->take_details();
  if (pool_.size() >= kPoolKept) {
    delete entry;
    return;
  }
  entry->owned = true;
  entry->kind = ObjectEntry::Kind::kObject;
  entry->state = ObjectState::kPending;
  entry->producer = nullptr;
  entry->blob = {};
  entry->size = 0;
  entry->mark = 0;
  entry->ready.store(false, std::memory_order_relaxed);
  pool_.push_back(entry);
}

void RefTable::register_kept() {
  drain_releases();
  tell_owners(std::exchange(unregistered_, {}));
}

void RefTable::register_now(const std::vector<ObjectEntry*>& entries) {
  std::vector<ObjectEntry*> untold;
  for (ObjectEntry* entry : entries) {
    if (entry->owned || entry->details().borrow.state != Borrow::kUnregistered) continue;
    unlist(entry);
    entry->mutable_details().borrow.state = Borrow::kRegistering;
    untold.push_back(entry);
  }
  tell_owners(untold);
}

void RefTable::tell_owners(const std::vector<ObjectEntry*>& untold) {
  if (untold.empty()) return;
  unconfirmed_.push_back(static_cast<uint32_t>(untold.size()));
  // Marked before the first owner is told: a marked entry is not destroyed until its owner has
  // answered.
  for (ObjectEntry* entry : untold) {
    ObjectDetails::Borrow& borrow = entry->mutable_details().borrow;
    borrow.state = Borrow::kRegistering;
    borrow.place = static_cast<uint32_t>(last_registration());
    ++borrow.lent;
  }
  // References that come together mostly have one owner, which one message tells of all.
  for (size_t i = 0; i < untold.size();) {
    std::shared_ptr<const proto::WorkerAddress> owner = untold[i]->details().owner;
    std::vector<ObjectId> ids;
    for (; i < untold.size() && ids.size() < kMostAtOnce &&
           untold[i]->details().owner->worker_id() == owner->worker_id();
         ++i)
      ids.push_back(untold[i]->id);
    sink_.add_borrower(*owner, ids, self_);
  }
}

void RefTable::confirm_borrows(const std::vector<ObjectId>& ids) {
  for (const ObjectId& id : ids) {
    ObjectEntry* entry = find(id);
    if (!entry || entry->details().borrow.state != Borrow::kRegistering) continue;
    ObjectDetails::Borrow& borrow = entry->mutable_details().borrow;
    borrow.state = Borrow::kRegistered;
    --unconfirmed_[borrow.place - static_cast<uint32_t>(first_unconfirmed_)];
    consider(entry);
  }
  while (!unconfirmed_.empty() && unconfirmed_.front() == 0) {
    unconfirmed_.pop_front();
    ++first_unconfirmed_;
  }
  while (!returns_.empty() && confirmed(returns_.front().after)) {
    Return due = std::move(returns_.front());
    returns_.pop_front();
    sink_.remove_borrower(*due.owner, due.id, due.lent);
  }
}

void RefTable::close() { closed_.store(true, std::memory_order_release); }

void RefTable::check_invariants() const {
  size_t registering = 0, unconfirmed = 0;
  size_t owned = 0, unregistered = 0;
  for (const auto& [id, entry] : entries_) {
    RT_CHECK(entry->id == id);
    const ObjectDetails::Borrow& borrow = entry->details().borrow;
    RT_CHECK(entry->owned || entry->details().owner);
    RT_CHECK(!entry->owned || borrow.state == Borrow::kUnregistered);
    RT_CHECK(!entry->ready || entry->state != ObjectState::kPending);
    if (!entry->owned && borrow.state == Borrow::kUnregistered) {
      RT_CHECK(unregistered_.at(borrow.place) == entry);
      ++unregistered;
    }
    registering += borrow.state == Borrow::kRegistering;
    owned += entry->owned;
  }
  RT_CHECK(owned == owned_);
  RT_CHECK(unregistered == unregistered_.size());
  for (uint32_t left : unconfirmed_) unconfirmed += left;
  RT_CHECK(registering == unconfirmed);
  RT_CHECK(returns_.empty() || !confirmed(returns_.front().after));
}

}  // namespace rt::worker
