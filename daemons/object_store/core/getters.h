// Keeps Get requests that wait for objects: who asked for what, which parts are answered, and until
// when they wait.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class Getters {
 public:
  struct Item {
    ObjectId id;
    std::vector<Source> sources;  // Other nodes that may have the object.
    // Until this time the object's seal may still be on its way, so the item is not lost yet.
    int64_t grace_until_us = 0;
    bool fetch_failed = false;
    Error error;  // The reason, if fetch_failed is set.
    bool done = false;
    GetAnswer answer;
  };
  struct Request {
    ClientId client = 0;
    CallId call = 0;
    Ticket ticket = 0;  // Names a task's arguments; 0 for all other requests.
    // The time-out of the request. A request for a task's arguments starts to count when the task
    // is admitted.
    int64_t timeout_us = -1;
    int64_t deadline_us = kNoDeadline;
    // The request waits in ArgumentLine for room, and none of its items waits for an object yet.
    bool in_line = false;
    size_t open = 0;  // The number of items without an answer.
    std::vector<Item> items;
  };
  struct Place {
    uint64_t request = 0;
    size_t item = 0;
  };

  uint64_t open(Request request);
  Request* find(uint64_t request);
  const Request* find(uint64_t request) const;
  // The item waits for `id` until answer() or remove().
  void wait(Place place, const ObjectId& id);
  void answer(Place place, GetAnswer answer);
  std::vector<Place> waiting_for(const ObjectId& id) const;
  // Items that wait for the object to be fetched get this error, and do not have it fetched again.
  void fail_fetch(const ObjectId& id, const Error& error);
  bool is_awaited(const ObjectId& id) const { return waiting_.contains(id); }
  Request remove(uint64_t request);
  std::vector<uint64_t> of_client(ClientId client) const;

  // With item == kWhole the timer is the request's deadline.
  void set_timer(int64_t at_us, Place place);
  // Removes and returns the next place whose timer is due. Skips timers of answered items.
  std::optional<Place> next_due(Now now);
  std::optional<int64_t> next_timer() const;
  size_t size() const { return requests_.size(); }
  void check_invariants() const;

  static constexpr size_t kWhole = SIZE_MAX;

 private:
  std::unordered_map<uint64_t, Request> requests_;
  std::unordered_multimap<ObjectId, Place> waiting_;
  std::multimap<int64_t, Place> timers_;
  uint64_t next_id_ = 1;
};

}  // namespace rt::store
