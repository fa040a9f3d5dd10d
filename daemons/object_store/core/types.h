// The vocabulary of the object store's core: who asks, what is stored, and the Sink its decisions
// go to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace rt::store {

using ClientId = uint64_t;  // one connection; never reused
using CallId = uint64_t;    // one request that is answered later

// Parts of the daemon itself that hold objects like clients do.
inline constexpr ClientId kFetcher = 1;   // fills copies of other nodes' objects
inline constexpr ClientId kTransfer = 2;  // pins what is being sent to other nodes
inline constexpr ClientId kFirstClient = 16;

inline constexpr int64_t kUnit = 64;    // objects within an extent start at multiples of this
inline constexpr int64_t kPage = 4096;  // everything else does at multiples of this
inline constexpr int64_t kNoDeadline = INT64_MAX;

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

struct Range {
  int64_t offset = 0;
  int64_t size = 0;
  int64_t end() const { return offset + size; }
  friend bool operator==(const Range&, const Range&) = default;
};

// A node that has a copy, by its front door.
struct Source {
  NodeId node;
  std::string ip;
  int port = 0;
  int64_t size = 0;  // 0: not known
};

struct CreateItem {
  ObjectId id;
  int64_t size = 0;
  WorkerId owner;
};

struct SealItem {
  ObjectId id;
  int64_t offset = 0;
  int64_t size = 0;
  uint64_t extent = 0;  // 0: made by create()
  WorkerId owner;
};

struct WantedItem {
  ObjectId id;
  std::vector<Source> sources;
};

struct GetAnswer {
  bool found = false;
  int64_t offset = 0;
  int64_t size = 0;
  WorkerId owner;
  Error error;  // when not found
};

struct LeasedExtent {
  uint64_t id = 0;
  Range range;
};

struct Holder {
  WorkerId worker;
  int64_t bytes = 0;
  int64_t objects = 0;
  int pid = 0;  // 0: not attached here
};

struct Stats {
  int64_t capacity = 0;
  int64_t used = 0;       // bytes in sealed and unsealed objects
  int64_t allocated = 0;  // bytes taken from the arena: objects and leased extents
  int64_t objects = 0;
  int64_t pinned = 0;           // bytes of pinned objects
  std::vector<Holder> holders;  // most bytes first
};

// Where StoreCore's decisions go. Implementations must not call back into the core from within
// these.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void reply_create(ClientId client, CallId call, Result<std::vector<int64_t>> offsets) = 0;
  virtual void reply_lease(ClientId client, CallId call, Result<LeasedExtent> extent) = 0;
  virtual void reply_get(ClientId client, CallId call, std::vector<GetAnswer> answers) = 0;
  // The client lied: its connection is to be closed. The core forgets it when client_gone()
  // follows.
  virtual void disconnect(ClientId client, Error why) = 0;
  // Pages of the arena up to this offset are needed; on_reserved() answers. One at a time.
  virtual void reserve(int64_t up_to) = 0;
  // Somebody waits for this object, which others have. kFetcher creates and seals it, or
  // on_fetch_failed() follows.
  virtual void fetch(const ObjectId& id, const std::vector<Source>& sources) = 0;
  // Somebody waits for room, which others may hold without knowing: in garbage their languages have
  // not collected. Said again while that is so.
  virtual void short_of_room() {}
};

// A flat message without a body, to whoever is attached: short_of_room().
constexpr uint32_t kShortOfRoomFlat = 1;

}  // namespace rt::store
