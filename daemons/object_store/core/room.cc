#include "daemons/object_store/core/room.h"

#include <algorithm>

namespace rt::store {

bool Room::place(Demand& demand) {
  const bool is_extent = demand.kind == Demand::Kind::kExtent;
  if (is_extent && allocator_.free_bytes() - demand.bytes < allocator_.capacity() / 4) return false;
  if (demand.bytes > allocator_.free_bytes() + (is_extent ? 0 : objects_.evictable_bytes()))
    return false;
  auto take = [this, &demand, is_extent](int64_t size) {
    for (;;) {
      if (auto offset = allocator_.allocate(size)) {
        demand.ranges.push_back({*offset, size});
        return true;
      }
      Object* victim = is_extent ? nullptr : objects_.oldest_evictable();
      if (!victim) return false;
      destroy(victim);
    }
  };
  bool placed = true;
  if (is_extent) {
    placed = take(demand.bytes);
  } else {
    for (size_t i = 0; placed && i < demand.items.size(); i++)
      placed = take(round_up(std::max<int64_t>(demand.items[i].size, 1), kPage));
  }
  if (!placed) give_back(demand);
  return placed;
}

void Room::give_back(Demand& demand) {
  for (Range range : demand.ranges) allocator_.release(range);
  if (!demand.ranges.empty()) freed_ = true;
  demand.ranges.clear();
}

void Room::end_extent(uint64_t extent) {
  for (Range gap : extents_.dissolve(extent)) allocator_.release(gap);
  freed_ = true;
}

void Room::destroy(Object* object) {
  if (object->extent != 0) {
    // The extent's lease is still running, so the client keeps the room.
    extents_.remove(object);
  } else {
    release(object->room);
  }
  objects_.erase(object);
}

}  // namespace rt::store
