// A request for room in the arena.
#pragma once

#include <vector>

#include "daemons/object_store/core/types.h"

namespace rt::store {

struct Demand {
  // kFetch: room for objects that are fetched once they have it.
  enum class Kind { kObjects, kExtent, kFetch };
  Kind kind = Kind::kObjects;
  ClientId client = 0;
  CallId call = 0;
  std::vector<CreateItem> items;
  std::vector<std::vector<Source>> sources;  // One list for each item of a kFetch.
  bool first = false;                        // Set for a kFetch that goes before others.
  int64_t bytes = 0;                         // The sum of all items, rounded up.
  int64_t since_us = 0;
  int64_t deadline_us = 0;
  bool wait = false;
  std::vector<Range> ranges;  // The room that the demand was given.
};

}  // namespace rt::store
