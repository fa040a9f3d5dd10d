// The vocabulary of the object store's core: clients, objects, and
// what is told of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace rt::store {

using ClientId = uint64_t;  // Identifies a connection; never reused.
using CallId = uint64_t;    // Identifies a request that is answered later.
// Names the arguments of one task; chosen by the client. 0: none.
using Ticket = uint64_t;

// Parts of the daemon that hold objects the way clients do.
inline constexpr ClientId kFetcher = 1;   // fills copies of other nodes' objects
inline constexpr ClientId kTransfer = 2;  // pins what is being sent to other nodes
inline constexpr ClientId kFirstClient = 16;

inline constexpr int64_t kUnit = 64;    // Objects within an extent start at multiples of this.
inline constexpr int64_t kPage = 4096;  // Everything else starts at multiples of this.
inline constexpr int64_t kNoDeadline = INT64_MAX;

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

struct Range {
  int64_t offset = 0;
  int64_t size = 0;
  int64_t end() const { return offset + size; }
  friend bool operator==(const Range&, const Range&) = default;
};

// A node that has a copy, with the address of its TCP port.
struct Source {
  NodeId node;
  std::string ip;
  int port = 0;
  int64_t size = 0;  // 0 if not known
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
  uint64_t extent = 0;  // 0 for an object that create() made
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
  Error error;          // set when `found` is false
  bool untold = false;  // the client should tell the owner that there is this copy
};

struct LeasedExtent {
  uint64_t id = 0;
  Range range;
};

struct Holder {
  WorkerId worker;
  int64_t bytes = 0;
  int64_t objects = 0;
  int pid = 0;  // 0 if not attached here
};

// Requests of one process that wait for room, for people. The kinds are those of
// proto::StoreWaiter.
struct Waiter {
  enum class Kind { kValues, kArguments, kCopies };
  Kind kind = Kind::kValues;
  WorkerId worker;
  JobId job;
  int pid = 0;
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t since_us = 0;  // when the oldest came; steady clock
};

struct Stats {
  int64_t capacity = 0;
  int64_t used = 0;  // bytes in sealed and unsealed objects
  // Bytes taken from the arena by objects and leased extents.
  int64_t allocated = 0;
  int64_t objects = 0;
  int64_t pinned = 0;           // bytes of pinned objects
  std::vector<Holder> holders;  // most bytes first
  std::vector<Waiter> waiters;  // by process, kind and job; the oldest first
  std::string no_pages;         // why the memory of the capacity cannot be had; empty: it can
};

// Tells clients something that they did not ask for: a flat message of this type, whose body is the
// ticket (8 bytes) if there is one.
struct Notice {
  enum Type : uint32_t {
    // A client waits for room that others may hold without knowing, in garbage that their languages
    // have not collected yet. Repeated every half second while a client waits.
    kShortOfRoom = 1,
    kWaitsForRoom = 2,  // the arguments with this ticket wait in line
    kHasRoom = 3,       // they do not any more, and are fetched
  };
  Type type = kShortOfRoom;
  ClientId client = 0;  // 0: all
  Ticket ticket = 0;
};

}  // namespace rt::store
