// A counted handle of an object. Copying and dropping one are single atomic operations, allowed in
// any thread and at any time, also inside garbage collectors and at interpreter exit: dropping the
// last reference only queues the entry, and the worker looks at it later.
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
  // The number of references in this process, or kQueued from the drop of the last one until the
  // table has processed its release queue. The entry may be destroyed only at 0, because the
  // thread that dropped the last reference has then finished with it.
  static constexpr int32_t kQueued = 1 << 30;
  std::atomic<int32_t> local_refs{0};
  RefEntry* next_queued = nullptr;
  RefTable* table = nullptr;
  // Scratch for duplicate checks: callers store a serial number of their own and compare.
  uint64_t mark = 0;
  // Whether this process knows the value or error. Once true it stays true. Last, so that
  // ObjectEntry begins in the padding behind it.
  std::atomic<bool> ready{false};
};

// Queues the entry for its table; defined in worker/core/ref_table.cc.
void release_last(RefEntry* entry);

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
