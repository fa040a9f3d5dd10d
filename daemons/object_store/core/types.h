// The vocabulary of the object store's core: clients, objects, and the news about them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace rt::store {

using ClientId = uint64_t;  // Identifies a connection; numbers are never reused.
using CallId = uint64_t;    // Identifies a request that is answered later.
// Names the arguments of one task; chosen by the client. 0: none.
using Ticket = uint64_t;

// Parts of the daemon that hold objects the way clients do.
inline constexpr ClientId kFetcher = 1;  // The part that fills copies of other nodes' objects.
// The part that pins objects while they are sent to other nodes.
inline constexpr ClientId kTransfer = 2;
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
  int64_t size = 0;  // 0 if not known.
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
  uint64_t extent = 0;  // 0 for an object that create() made.
  WorkerId owner;
};

// Workers, jobs, and nodes with all their workers that have ended, so that what they own is freed.
struct Ended {
  std::vector<WorkerId> workers;
  std::vector<JobId> jobs;
  std::vector<NodeId> nodes;
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
  Error error;          // Set when `found` is false.
  bool untold = false;  // Whether the client should tell the owner that there is this copy.
};

struct LeasedExtent {
  uint64_t id = 0;
  Range range;
};

struct Holder {
  WorkerId worker;
  int64_t bytes = 0;
  int64_t objects = 0;
  int pid = 0;  // 0 if the owner is not attached here.
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
  int64_t since_us = 0;  // When the oldest of them came, by the steady clock.
};

struct Stats {
  int64_t capacity = 0;
  int64_t used = 0;  // The bytes in sealed and unsealed objects.
  // Bytes taken from the arena by objects and leased extents.
  int64_t allocated = 0;
  int64_t objects = 0;
  int64_t pinned = 0;           // The bytes of pinned objects.
  std::vector<Holder> holders;  // Holders with most bytes come first.
  std::vector<Waiter> waiters;  // Grouped by process, kind and job; the oldest comes first.
  std::string no_pages;         // Why the memory of the capacity cannot be had; empty if it can.
};

// Tells clients something that they did not ask for: a flat message of this type, whose body is the
// ticket (8 bytes) if there is one.
struct Notice {
  enum Type : uint32_t {
    // A client waits for room that others may hold without knowing, in garbage that their languages
    // have not collected yet. Repeated every half second while a client waits.
    kShortOfRoom = 1,
    kWaitsForRoom = 2,  // The arguments with this ticket wait in line.
    kHasRoom = 3,       // The arguments do not wait any more and are fetched.
  };
  Type type = kShortOfRoom;
  ClientId client = 0;  // The receiver; 0: all clients.
  Ticket ticket = 0;
};

}  // namespace rt::store
