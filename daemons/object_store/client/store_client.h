// A driver's or worker's access to its node's object store. The arena is mapped once, twice:
// read-write to fill new objects, read-only for what is handed to user code.
//
// Threads: under the owner's mutex, like the PollLoop it runs on. Exception: dropping a pin (the
// Keepalive of a view) may happen in any thread, at any time; it only appends to a queue that
// drain_releases() empties.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/settings.h"
#include "common/net/poll_loop.h"
#include "common/rpc/connection.h"

namespace rt::store {

struct Allocation {
  MutableBytes memory;  // writable view of the new object
  int64_t offset = 0;
  uint64_t extent_id = 0;  // 0: made by the daemon for this object alone
};

struct Location {
  NodeId node;
  std::string ip;
  int port = 0;  // the node's front door
  int64_t size = 0;
};

class StoreClient {
 public:
  struct Options {
    std::string socket_path;
    rpc::Identity identity;
    WorkerId worker_id;
    JobId job_id;
    int pid = 0;
    std::function<void()> on_short_of_room = nullptr;  // somebody waits for room in the store: what
                                                       // is held for nothing may be dropped now
  };
  // Blocks: connects, receives the descriptors, maps. kUnavailable/kIo name the socket and the
  // remedy.
  static Result<std::unique_ptr<StoreClient>> attach(net::PollLoop& loop, const Settings& settings,
                                                     const Options& options, int64_t timeout_us);
  ~StoreClient();

  // Room for an object. Small sizes come from a leased extent without asking anybody (`done` is
  // then called before create() returns); otherwise the daemon answers. kObjectStoreFull after
  // waiting for space: the message says who holds the memory.
  using Created = std::function<void(Result<Allocation>)>;
  void create(const ObjectId& id, int64_t size, const WorkerId& owner, Created done);
  // Makes it visible to everyone on this node and returns a pinned read-only view. One-way: nothing
  // is waited for.
  OwnedBytes seal(const ObjectId& id, const Allocation& allocation, const WorkerId& owner);
  void abort(const ObjectId& id, const Allocation& allocation);

  // A pinned view of each object, fetched from `locations` when it is not here. Per object:
  // kObjectLost (no location has it), kTimeout, kObjectStoreFull. Objects sealed through this
  // client or already viewed are answered without a message.
  struct Wanted {
    ObjectId id;
    std::vector<Location> locations;
  };
  using Got = std::function<void(std::vector<Result<OwnedBytes>>)>;
  void get(std::vector<Wanted> wanted, int64_t timeout_us, Got done);

  // From the owner, when the last reference is gone: here and at `locations`. One-way.
  void free(const std::vector<ObjectId>& ids, const std::vector<Location>& locations);
  // Tells the daemon about views dropped since the last call. Cheap when there are none.
  void drain_releases();
  bool is_open() const;
  void set_closed_handler(std::function<void(const Error&)> handler);
  int64_t capacity() const;

 private:
  struct Impl;
  explicit StoreClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// memcpy for large blocks: non-temporal stores, a second thread beyond
// settings.parallel_copy_bytes.
void copy_large(uint8_t* to, const uint8_t* from, size_t n, size_t parallel_from);

// Before the first look at a large source. Arrays that were never written (np.zeros) are read page
// by page from the kernel's one zero page: 0.2 us or more a fault and 4 KiB. With huge pages it is
// 500 times less. Newer NumPys ask for them themselves; elsewhere this changes nothing that is
// resident.
void prefer_huge_pages(const uint8_t* from, size_t n);

}  // namespace rt::store
