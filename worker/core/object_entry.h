// Everything this process knows of one object. Guarded by the worker's mutex, with two exceptions:
// the atomic members of RefEntry, and what `ready` publishes. Once `ready` is true, `state`,
// `blob` and `size` of an in-memory object do not change any more.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "worker/ref.h"

namespace rt::worker {

// An encoded value (worker/value.h) on the heap.
struct Blob {
  std::shared_ptr<const uint8_t[]> data;
  size_t size = 0;
  Bytes bytes() const { return {data.get(), size}; }
  explicit operator bool() const { return data != nullptr; }
};
Blob copy_blob(Bytes bytes);

struct ObjectLocation {
  NodeId node;
  std::string ip;
  int port = 0;
};

enum class ObjectState : uint8_t {
  // Owned: its task has not finished. Borrowed: the owner has not been asked or has not answered.
  kPending,
  // The value or an error is in `blob`.
  kInMemory,
  // The value is sealed in the stores of `locations`.
  kInStore,
};

// The purpose of the fetch that is under way: to have a copy on this node, or also to read it.
enum class Fetch : uint8_t { kNone, kCopy, kView };

// Why a value could not be brought to this node, and when on the steady clock.
struct FailedFetch {
  int64_t at_us = 0;
  Error why;
};

// Everything about an object beyond a small value of this process. Most objects have none of it.
struct ObjectDetails {
  // Each runs once, under the mutex, when the object becomes ready.
  std::vector<std::function<void()>> waiters;
  std::vector<Ref> contained;  // References inside the value, kept as long as it.

  // Owned objects: the processes that borrow it, each once, and how often it was lent to them.
  struct Borrower {
    WorkerId id;
    uint32_t lent = 0;
  };
  std::vector<Borrower> borrowers;

  // Borrowed objects only.
  std::shared_ptr<const proto::WorkerAddress> owner;
  // Whether the owner counts this process as a borrower. A registration that is on its way has not
  // been acknowledged.
  enum class BorrowState : uint8_t { kUnregistered, kRegistering, kRegistered };
  struct Borrow {
    BorrowState state = BorrowState::kUnregistered;
    // In kUnregistered: the place in RefTable's list of these. In kRegistering: the number of the
    // registration.
    uint32_t place = 0;
    uint32_t lent = 0;  // How often the owner has counted this process.
  };
  Borrow borrow;
  bool asked = false;  // A GetObject request is on its way to the owner.

  // Objects in shared memory.
  std::vector<ObjectLocation> locations;
  // Pins the shared memory. The creator of a shared object keeps its pin.
  OwnedBytes mapped;
  // The view that users of the value in this process hold, and its bytes.
  std::weak_ptr<const void> view;
  Bytes view_bytes;
  Fetch fetching = Fetch::kNone;
  // The fetch that failed last. It says nothing of the value, which can be fetched again.
  std::unique_ptr<const FailedFetch> failed_fetch;
};

struct Task;

// Fills two cache lines at most: bursts of small results are bound by the memory they touch.
struct ObjectEntry : RefEntry {
  ObjectEntry() = default;
  ~ObjectEntry() { take_details(); }

  bool owned = true;
  enum class Kind : uint8_t { kObject, kActorHandle, kStream };
  // Actor handles and streams hold no value: dropping the last reference ends the actor, or the
  // consumer's end of a generator.
  Kind kind = Kind::kObject;
  // kInMemory is stored after the blob, because readers without the mutex look here first.
  std::atomic<ObjectState> state{ObjectState::kPending};

  // Owned objects: the value is an error that nobody has seen, which free_object() reports.
  // Readers clear this without the mutex.
  mutable std::atomic<bool> unseen_error{false};

  // Owned and pending objects: the task that makes the value. Not valid once the object is ready.
  Task* producer = nullptr;

  // The value.
  Blob blob;
  int64_t size = 0;  // Bytes of the encoded value.

  // The details, or empty ones as long as the object has none.
  const ObjectDetails& details() const {
    const ObjectDetails* details = details_.load(std::memory_order_acquire);
    return details ? *details : kNoDetails;
  }
  ObjectDetails& mutable_details() {
    ObjectDetails* details = details_.load(std::memory_order_relaxed);
    if (!details) {
      details = new ObjectDetails;
      details_.store(details, std::memory_order_release);
    }
    return *details;
  }
  bool has_details() const { return details_.load(std::memory_order_relaxed); }
  std::unique_ptr<ObjectDetails> take_details() {
    ObjectDetails* details = details_.load(std::memory_order_relaxed);
    if (details) details_.store(nullptr, std::memory_order_relaxed);
    return std::unique_ptr<ObjectDetails>(details);
  }

  bool fetch_failed_since(int64_t us) const {
    const auto& failed = details().failed_fetch;
    return failed && failed->at_us >= us;
  }
  bool in_store() const { return state == ObjectState::kInStore; }
  // Whether the store of the node is known to hold it, or to have held it.
  bool is_on(const NodeId& node) const {
    return std::any_of(details().locations.begin(), details().locations.end(),
                       [&](const auto& l) { return l.node == node; });
  }
  // Whether the value is not made yet, as far as this process knows, or is on other nodes only.
  bool is_awaited_on(const NodeId& node) const { return !ready || (in_store() && !is_on(node)); }

 private:
  static const ObjectDetails kNoDetails;
  // Made under the mutex, at the first use of mutable_details(). Atomic, because the thread that
  // drops the last reference looks at the references inside without the mutex.
  std::atomic<ObjectDetails*> details_ = nullptr;
};
static_assert(sizeof(ObjectEntry) <= 128);

// The reference must not be empty.
inline ObjectEntry& entry_of(const Ref& ref) { return *static_cast<ObjectEntry*>(ref.entry()); }

}  // namespace rt::worker
