// Everything this process knows of one object. Guarded by the worker's mutex, except what RefEntry
// makes atomic and what `ready` publishes: once it is true, `state`, `blob` and `size` of an
// in-memory object do not change any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
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
  kPending,   // owned: its task has not finished. Borrowed: the owner has not been asked or has not
              // answered
  kInMemory,  // `blob` (a value or an error)
  kInStore,   // sealed in the stores of `locations`
};

struct Task;

struct ObjectEntry : RefEntry {
  bool owned = true;
  enum class Kind : uint8_t { kObject, kActorHandle, kStream };
  Kind kind = Kind::kObject;  // the others hold no value: their last reference ends an actor, or
                              // the consumer's end of a generator
  std::atomic<ObjectState> state{
      ObjectState::kPending};  // kInMemory is stored after the blob: readers without the mutex look
                               // here first

  // borrowed
  bool registered = false;   // the owner counts us
  bool registering = false;  // ... has been told, has not answered
  bool asked = false;        // GetObject is under way
  std::shared_ptr<const proto::WorkerAddress> owner;

  // owned and pending: the task that makes it. Not looked at once the object is ready.
  Task* producer = nullptr;

  // owned: it became an error that nobody has seen; free_object() looks at it. Readers clear it
  // without the mutex.
  mutable std::atomic<bool> unseen_error{false};

  // value
  Blob blob;
  int64_t size = 0;  // of the encoded value
  std::vector<ObjectLocation> locations;
  OwnedBytes mapped;               // pinned view: held by the creator of a shared object
  std::weak_ptr<const void> view;  // a view somebody in this process still uses
  Bytes view_bytes;
  bool fetching = false;
  std::vector<Ref> contained;  // references inside the value, alive as long as it

  std::vector<WorkerId> borrowers;  // owned: who else counts (one entry per borrower)
  std::vector<std::function<void()>>
      waiters;  // run once, under the mutex, when the object becomes ready

  bool in_store() const { return state == ObjectState::kInStore; }
};

}  // namespace rt::worker
