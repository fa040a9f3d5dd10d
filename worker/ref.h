// A counted handle to an object. Copying and dropping are one atomic operation, allowed in any
// thread, at any time, also inside collectors and at interpreter exit: the last drop only queues
// the entry for the worker to look at.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "common/base/ids.h"

namespace rt::worker {

class RefTable;

// The part of an object's entry that language bindings touch. Lives as long as a Ref to it does.
struct RefEntry {
  ObjectId id;
  // References of this process, and kQueued from the last drop until the table has looked at its
  // release queue. Only at 0 the entry may end: who dropped the last reference is done with it.
  static constexpr int32_t kQueued = 1 << 30;
  std::atomic<int32_t> local_refs{0};
  std::atomic<bool> ready{false};  // value or error known to this process (a hint: true stays true)
  RefEntry* next_queued = nullptr;
  RefTable* table = nullptr;
  uint64_t mark = 0;  // scratch for duplicate checks: compare with a caller's serial number
};

void release_last(RefEntry* entry);  // worker/core/ref_table.cc

class Ref {
 public:
  Ref() = default;
  explicit Ref(RefEntry* entry) : entry_(entry) {
    if (entry_) entry_->local_refs.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(const Ref& other) : Ref(other.entry_) {}
  Ref(Ref&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~Ref() { reset(); }
  void reset() {
    if (RefEntry* e = std::exchange(entry_, nullptr)) {
      int32_t count = e->local_refs.load(std::memory_order_relaxed);
      while (!e->local_refs.compare_exchange_weak(count, count == 1 ? RefEntry::kQueued : count - 1,
                                                  std::memory_order_acq_rel,
                                                  std::memory_order_relaxed)) {}
      if (count == 1) release_last(e);
    }
  }

  explicit operator bool() const { return entry_ != nullptr; }
  const ObjectId& id() const { return entry_->id; }
  RefEntry* entry() const { return entry_; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.entry_ == b.entry_; }

 private:
  RefEntry* entry_ = nullptr;
};

}  // namespace rt::worker
