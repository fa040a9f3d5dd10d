// Remembers objects that were freed before they were sealed, for a while and in bounded number: the
// owner's Free may overtake the seal, because the two travel on different connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
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

 private:
  const size_t max_entries_;
  // Each entry has the time until which it counts.
  std::list<std::pair<int64_t, ObjectId>> objects_;
  std::unordered_map<ObjectId, std::list<std::pair<int64_t, ObjectId>>::iterator> object_at_;
};

}  // namespace rt::store
