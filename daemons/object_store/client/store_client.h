// A driver's or worker's access to its node's object store. The arena is mapped twice: read-write
// to fill new objects, and read-only for what is handed to user code.
//
// Calls need the owner's mutex, like the PollLoop on which the client runs. Only pins may be
// dropped without it: the Keepalive of a view may go in any thread at any time, because that only
// appends to a queue, which drain_releases() empties.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/settings.h"
#include "common/net/poll_loop.h"
#include "common/rpc/connection.h"

namespace rt::store {

struct Allocation {
  MutableBytes memory;  // A writable view of the new object.
  int64_t offset = 0;
  uint64_t extent_id = 0;  // 0 if the daemon made the room for this object alone.
};

struct Location {
  NodeId node;
  std::string ip;
  int port = 0;  // The TCP port of the node.
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
    // Called while a request waits for room in the store: the process should drop what it holds
    // without need.
    std::function<void()> on_short_of_room = nullptr;
  };
  // Connects, receives the descriptors and maps the arena; blocks up to `timeout_us`. Errors name
  // the socket and the remedy.
  static Result<std::unique_ptr<StoreClient>> attach(net::PollLoop& loop, const Settings& settings,
                                                     const Options& options, int64_t timeout_us);
  ~StoreClient();

  // Allocates room for an object. Small ones are cut from a leased extent without a message, and
  // `done` runs before create() returns; for others the daemon answers. Fails with
  // kObjectStoreFull after waiting for room, naming who holds the memory, with kAlreadyExists if
  // this process holds the object, and with kUnavailable once the connection is closed.
  using Created = std::function<void(Result<Allocation>)>;
  void create(const ObjectId& id, int64_t size, const WorkerId& owner, Created done);
  // Makes the object visible to every process on this node and returns a pinned read-only view. The
  // message is one-way, so that the call waits for nothing.
  OwnedBytes seal(const ObjectId& id, const Allocation& allocation, const WorkerId& owner);
  // Gives up an allocation instead of sealing it.
  void abort(const ObjectId& id, const Allocation& allocation);

  // Gets a pinned view of each object, fetched from `locations` if it is not here. Each object may
  // fail with kObjectLost (no location has it), kTimeout or kObjectStoreFull. Objects that this
  // client sealed or views already need no message. A negative `timeout_us` means no limit.
  struct Wanted {
    ObjectId id;
    std::vector<Location> locations;
  };
  using Got = std::function<void(std::vector<Result<OwnedBytes>>)>;
  void get(std::vector<Wanted> wanted, int64_t timeout_us, Got done);
  // Gets the arguments of a task that has not started. They come together, when the store has room
  // for all of them; the time-out counts from then on. They fail with kObjectStoreFull when there
  // can never be room, or none is to be expected. The result must be kept until the task has ended
  // and may be dropped in any thread; dropped earlier, it gives the arguments up, and `done` may
  // run with errors. `done` may run before get_arguments() returns.
  struct Arguments {
    Keepalive holds;
    uint64_t ticket = 0;  // Names the arguments; 0 if nothing was asked of the store.
  };
  [[nodiscard]] Arguments get_arguments(std::vector<Wanted> wanted, int64_t timeout_us, Got done);
  // Returns whether the arguments wait for room in the store, so that they are not on their way
  // yet.
  bool waits_for_room(uint64_t ticket) const;
  // The objects for which create() waits for the daemon, with their sizes. The daemon answers at
  // once as long as it has room.
  const std::unordered_map<ObjectId, int64_t>& asked_room() const;
  // Tells the store that the tasks of this process wait for something, so that they will not give
  // their arguments back by themselves.
  void set_blocked(bool blocked);

  // For the owner, when the last reference is gone: frees the objects here and at `locations`.
  // One-way.
  void free(const std::vector<ObjectId>& ids, const std::vector<Location>& locations);
  // Returns whether the owner of an object that get() returned may not know that this node has a
  // copy. The caller then tells the owner, and says so with owner_knows() while it holds the view;
  // otherwise the copy goes with its last view. True once for each answer of the daemon.
  bool take_untold(const ObjectId& id);
  // Tells the daemon that the owner knows of the object. Also used for an object that this process
  // has sealed for another one.
  void owner_knows(const ObjectId& id);
  // Tells the daemon which views were dropped since the last call, and of which copies the owners
  // know. Cheap if there are none.
  void drain_releases();
  bool is_open() const;
  // Returns how often the daemon has said that a request of some client waits for room. It repeats
  // that every half second.
  uint64_t shortages() const;
  // Sets what runs when the connection to the store ends.
  void set_closed_handler(std::function<void(const Error&)> handler);
  int64_t capacity() const;

 private:
  struct Impl;
  explicit StoreClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A memcpy for large blocks. Uses non-temporal stores, and a second thread for more than
// `parallel_from` bytes (setting parallel_copy_bytes). Any thread may call.
void copy_large(uint8_t* to, const uint8_t* from, size_t n, size_t parallel_from);

// Call before the first look at a large source. Arrays that were never written (np.zeros) are read
// page by page from the kernel's zero page, with a fault of at least 0.2 us for every 4 KiB. Huge
// pages need 500 times fewer faults. Recent NumPy versions ask for huge pages themselves; for
// other memory the call changes nothing that is resident.
void prefer_huge_pages(const uint8_t* from, size_t n);

}  // namespace rt::store
