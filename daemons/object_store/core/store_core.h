// The object store's decisions: who gets room, who sees what, what is freed when. Events and `now`
// come in, replies go out through the Sink, never later than the event that made them possible.
//
// Everything a client says is checked against what was leased to it; one that lies is disconnected
// and nothing of others is touched. client_gone() reclaims what was only its: unsealed objects,
// extent leases, pins, waiting requests. Threads: one. Failure: none of its own; what cannot be
// served is answered with an Error.
#pragma once

#include <deque>
#include <list>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "daemons/object_store/core/allocator.h"
#include "daemons/object_store/core/extents.h"
#include "daemons/object_store/core/getters.h"
#include "daemons/object_store/core/object_table.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class StoreCore {
 public:
  struct Options {
    int64_t capacity = 0;  // rounded down to pages
    NodeId node;           // ours, to recognise in locations; nil: not known
    int64_t create_wait_us = 5'000'000;
    int64_t seal_grace_us = 2'000'000;  // an object said to be here may be sealed this much later
    int64_t reserve_step = 64 << 20;    // pages are asked for in steps of this
    size_t max_waiting = 100'000;       // requests waiting for room, and for objects
    size_t max_early_frees = 65'536;    // and owners that are gone
    int64_t gone_owner_us =
        60'000'000;  // what is sealed for an owner that is gone is freed, this long
  };
  StoreCore(Options options, Sink& sink);

  // Asks for the first pages before anybody needs them.
  void reserve_ahead(int64_t bytes);
  Status attach(ClientId client, const WorkerId& worker, const JobId& job, int pid);
  bool is_attached(ClientId client) const { return clients_.count(client) > 0; }
  void client_gone(ClientId client, Now now);

  // All or nothing. `wait`: stay in line for create_wait_us when there is no room.
  void create(ClientId client, CallId call, std::vector<CreateItem> items, bool wait, Now now);
  void lease_extent(ClientId client, CallId call, int64_t size, Now now);
  // The sealer gets a pin on each. `finished`: extents it will put nothing more into.
  void seal(ClientId client, const std::vector<SealItem>& items,
            const std::vector<uint64_t>& finished, Now now);
  void abort(ClientId client, const std::vector<ObjectId>& ids, Now now);
  // timeout_us < 0: no limit. One pin per object found.
  void get(ClientId client, CallId call, std::vector<WantedItem> items, int64_t timeout_us,
           Now now);
  void release(ClientId client, const std::vector<ObjectId>& ids, Now now);
  void free(const std::vector<ObjectId>& ids, Now now);
  // Also what is sealed for these workers later: their tasks end a moment after them.
  void free_owned_by(const std::vector<WorkerId>& workers, const std::vector<JobId>& jobs, Now now);
  bool contains(const ObjectId& id);

  // Answers Sink::reserve(): pages up to here exist now; an error says why there are not more.
  void on_reserved(int64_t up_to, const Status& status, Now now);
  void on_fetch_failed(const ObjectId& id, const Error& error, Now now);
  void tick(Now now);
  std::optional<int64_t> next_deadline() const;

  Stats stats() const;
  // Of stats(): capacity and used, at once.
  Stats use() const;
  void check_invariants() const;

 private:
  struct Pin {
    Object* object = nullptr;
    uint32_t count = 0;
  };
  struct Client {
    WorkerId worker;
    JobId job;
    int pid = 0;
    bool condemned = false;  // lied; nothing of it is listened to any more
    std::unordered_map<ObjectId, Object*> unsealed;
    std::unordered_map<ObjectId, Pin> pins;  // of one id always the same object
    std::set<uint64_t> extents;
  };
  // A request for room that waits: for somebody to free some, or for the pages under the room it
  // was given.
  struct Demand {
    ClientId client = 0;
    CallId call = 0;
    bool extent = false;
    std::vector<CreateItem> items;
    int64_t bytes = 0;  // all items, rounded
    int64_t deadline_us = 0;
    bool wait = false;
    std::vector<Range> ranges;
  };

  Client* listen(ClientId client);
  void condemn(ClientId client, Error why);

  // store_space.cc
  bool place(Demand& demand);
  void give_back(Demand& demand);
  void submit(Demand demand, Now now);
  void finish(Demand& demand);
  void refuse(const Demand& demand, Error error);
  void ask_for_pages();
  void settle(Now now);  // after every event: serve those who wait for room
  void lift_limit(Now now);
  Error full_error(const Demand& demand) const;
  std::vector<Holder> holders() const;

  // store_core.cc
  void pin(Client& client, Object* object);
  bool unpin(Client& client, const ObjectId& id, uint32_t count);
  void destroy(Object* object);
  void end_lease(uint64_t extent);
  void drop_unsealed(Object* object, Now now);
  bool take_early_free(const ObjectId& id, Now now);
  void note_gone(const WorkerId& owner, Now now);
  void pursue(Getters::Place place, Now now);
  void pursue_all(const ObjectId& id, Now now);
  void complete(uint64_t request);

  const Options options_;
  Sink& sink_;
  Allocator allocator_;
  ObjectTable objects_;
  Extents extents_;
  Getters getters_;
  std::unordered_map<ClientId, Client> clients_;

  std::list<Demand> waiting_;      // no room yet, oldest first
  std::list<Demand> reserving_;    // have room, its pages are being reserved
  int64_t reserved_ = 0;           // pages below exist
  int64_t asked_ = 0;              // reserve() under way up to here; 0: none
  std::optional<Error> no_pages_;  // why the limit is below the capacity
  int64_t limited_at_us_ = 0;
  bool room_freed_ = false;
  int64_t next_short_us_ = 0;  // when it is said next that somebody waits for room

  std::unordered_set<ObjectId> fetching_;
  // Freed by their owner before their seal arrived here (the two travel on different connections).
  std::list<std::pair<int64_t, ObjectId>> early_frees_;
  std::unordered_map<ObjectId, std::list<std::pair<int64_t, ObjectId>>::iterator> early_free_at_;
  std::deque<std::pair<int64_t, WorkerId>> gone_order_;  // until when
  std::unordered_set<WorkerId> gone_owners_;
};

}  // namespace rt::store
