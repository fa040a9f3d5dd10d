// The object store's decisions: who gets room, who sees what, what is freed when. Events come in
// with `now`, replies leave through StoreSink during the event that makes them possible.
//
// The core checks everything that a client says against what was given to that client. A client
// that breaks the protocol is disconnected, without harm to others. client_gone() reclaims what
// only that client used: unsealed objects, extent leases, pins, waiting requests. The core runs in
// one thread and never fails itself: it answers requests that it cannot serve with an Error.
#pragma once

#include <list>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "daemons/object_store/core/allocator.h"
#include "daemons/object_store/core/argument_line.h"
#include "daemons/object_store/core/clients.h"
#include "daemons/object_store/core/demand.h"
#include "daemons/object_store/core/early_frees.h"
#include "daemons/object_store/core/extents.h"
#include "daemons/object_store/core/getters.h"
#include "daemons/object_store/core/gone_owners.h"
#include "daemons/object_store/core/object_table.h"
#include "daemons/object_store/core/pages.h"
#include "daemons/object_store/core/report.h"
#include "daemons/object_store/core/room.h"
#include "daemons/object_store/core/store_sink.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class StoreCore {
 public:
  struct Options {
    int64_t capacity = 0;  // Rounded down to pages.
    // This node's id, to recognise it in locations; nil if not known.
    NodeId node;
    int64_t create_wait_us = 5'000'000;
    // An object that is said to be here may be sealed this much later.
    int64_t seal_grace_us = 2'000'000;
    int64_t reserve_step = 64 << 20;  // Pages are reserved in steps of so many bytes.
    // Bounds requests that wait for room, and requests that wait for objects.
    size_t max_waiting = 100'000;
    // Bounds frees that arrived before the seal, and remembered owners that are gone.
    size_t max_early_frees = 65'536;
    // For this long, objects sealed for an owner that is gone are freed.
    int64_t gone_owner_us = 60'000'000;
  };
  // `sink` must outlive the core.
  StoreCore(Options options, StoreSink& sink);

  // Reserves the pages below `up_to` before any client needs them.
  void reserve_ahead(int64_t up_to);
  // Makes a connection a client. Fails with kInvalid for the second call of a connection.
  Status attach(ClientId client, const WorkerId& worker, const JobId& job, int pid) {
    return clients_.attach(client, worker, job, pid);
  }
  // Notes that the connection has ended: reclaims what only this client used.
  void client_gone(ClientId client, Now now);

  // Creates all items or none. If there is no room, the request waits up to create_wait_us with
  // `wait`, and is refused without.
  void create(ClientId client, CallId call, std::vector<CreateItem> items, bool wait, Now now);
  void lease_extent(ClientId client, CallId call, int64_t size, Now now);
  // Gives the sealer one pin on each object. `finished` names extents into which the client puts
  // nothing more.
  void seal(ClientId client, const std::vector<SealItem>& items,
            const std::vector<uint64_t>& finished, Now now);
  void abort(ClientId client, const std::vector<ObjectId>& ids, Now now);
  // Waits for the items, without limit if timeout_us < 0. The reply gives the client one pin on
  // each object that was found. Without a ticket (0), fetches go before those of arguments, and
  // each one waits for room up to create_wait_us, or for as long as running tasks will make room.
  //
  // With a ticket the items are the arguments of a task: nothing is fetched or pinned before there
  // is room for all of them, and the time-out counts from then on. They fail with kObjectStoreFull
  // when together they are larger than the store, and when no running task has been expected to
  // make enough room for create_wait_us. The client says with update_tasks() that the task has
  // ended, or that it is not wanted any more.
  void get(ClientId client, CallId call, std::vector<WantedItem> items, int64_t timeout_us, Now now,
           Ticket ticket);
  // Notes that the tasks with the tickets `ended` have ended, or are not wanted any more.
  // `blocked`, if set, says whether the client's tasks wait for something (ray.get), so that they
  // will not end by themselves.
  void update_tasks(ClientId client, const std::vector<Ticket>& ended, std::optional<bool> blocked,
                    Now now);
  // Takes back the pins of `ids`. The owners of `told`, which the client holds until now, know that
  // these objects are here and free them, or will know at once. An object whose owner does not know
  // of it is dropped with its last pin: a copy, or an object that one process has sealed for
  // another.
  void release(ClientId client, const std::vector<ObjectId>& ids, Now now,
               const std::vector<ObjectId>& told);
  void free(const std::vector<ObjectId>& ids, Now now);
  // Frees all objects of these workers, jobs and nodes, and objects that are sealed for these
  // owners a little later: their tasks end a moment after them.
  void free_owned_by(const Ended& ended, Now now);
  bool contains(const ObjectId& id) const;

  // Answers StoreSink::reserve(): pages below `up_to` exist. An error says why there are not more.
  void on_reserved(int64_t up_to, const Status& status, Now now);
  void on_fetch_failed(const ObjectId& id, const Error& error, Now now);

  // ---- time
  void tick(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const;

  // With `waiters_only` the answer has only capacity, used bytes and waiters, and takes constant
  // time unless something waits. Any other answer lacks the waiters and takes a pass over all
  // objects.
  Stats stats(bool waiters_only = false) const;
  void check_invariants() const;

 private:
  // Disconnects a client that broke the protocol.
  void condemn(ClientId client, Error why);

  // Defined in store_space.cc.
  void submit(Demand demand, Now now);
  void finish(Demand& demand, Now now);
  void refuse(const Demand& demand, Error error, Now now);
  // Runs after every event and serves the requests that wait for room.
  void serve_room_demands(Now now);
  void lift_limit(Now now);
  // Makes the error that says why there is no room for a request of this size.
  Error full(int64_t wanted_bytes) const {
    return full_error(wanted_bytes, allocator_, extents_, pages_, stats().holders);
  }

  // Defined in store_arguments.cc.
  // Answers what can be answered of a request, and starts what the rest waits for.
  void begin(uint64_t request, Now now);
  // Gives a task room for all of its arguments, or nothing. Without `may_take_room` only a task
  // that needs none is admitted.
  bool admit(std::list<ArgumentLine::Entry>::iterator entry, bool may_take_room, Now now);
  // Admits the tasks for which there is room, and fails those that are stuck for too long. Returns
  // true if one failed: those behind it may be tried then.
  bool serve_line(Now now);
  // Returns whether so much room is free or will be when tasks end that are running.
  bool room_will_come(int64_t bytes) const;

  // Defined in store_core.cc.
  void pin(Client& client, Object* object);
  bool unpin(Client& client, const ObjectId& id, uint32_t count);
  void start_fetch(const ObjectId& id, const std::vector<Source>& sources, bool first, Now now);
  void fail_fetch(const ObjectId& id, const Error& error, Now now);
  // Answers an item if that is possible; otherwise starts what it waits for.
  void try_answer(Getters::Place place, Now now);
  void try_answer_all(const ObjectId& id, Now now);
  void complete(uint64_t request);

  const Options options_;
  StoreSink& sink_;
  Allocator allocator_;
  ObjectTable objects_;
  Extents extents_;
  Room room_{allocator_, objects_, extents_};
  Getters getters_;
  ArgumentLine arguments_;
  Clients clients_;
  Pages pages_;

  // Requests for room: those that have none yet, the oldest first, and those whose pages are being
  // reserved.
  std::list<Demand> waiting_;
  std::list<Demand> reserving_;
  // When kShortOfRoom is due again while a client waits for room.
  int64_t next_short_us_ = 0;

  // Objects that are being fetched, or wait for room to be fetched into.
  struct Fetching {
    int64_t since_us = 0;
    Range room;          // Set aside until the fetcher creates the object.
    bool freed = false;  // Whether the copy is freed when it arrives.
  };
  std::unordered_map<ObjectId, Fetching> fetching_;
  EarlyFrees early_frees_;
  GoneOwners gone_owners_;
};

}  // namespace rt::store
