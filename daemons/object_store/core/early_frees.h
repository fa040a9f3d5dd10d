// Remembers objects that were freed before they were sealed, for a while and in bounded number.
// Either the owner's Free overtook the seal (the two travel on different connections), or the owner
// has just ended and its tasks end a moment later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/base/clock.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class EarlyFrees {
 public:
  explicit EarlyFrees(size_t max_entries);
  ~EarlyFrees();

  void add(const ObjectId& id, int64_t until_us);
  // Returns whether the object was freed early, and forgets it.
  bool take(const ObjectId& id, Now now);
  // Forgets those owners that were to be remembered until `forget_us` or less.
  void add_gone_owner(const WorkerId& owner, int64_t until_us, int64_t forget_us);
  bool is_gone(const WorkerId& owner) const { return gone_owners_.contains(owner); }

 private:
  const size_t max_entries_;
  // Each entry has the time until which it counts.
  std::list<std::pair<int64_t, ObjectId>> objects_;
  std::unordered_map<ObjectId, std::list<std::pair<int64_t, ObjectId>>::iterator> object_at_;
  std::deque<std::pair<int64_t, WorkerId>> gone_order_;
  std::unordered_set<WorkerId> gone_owners_;
};

}  // namespace rt::store
