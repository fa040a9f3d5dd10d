// Gives out the arena, and takes it back: copies that nobody needs are evicted for it.
//
// Whatever frees room is noted until take_freed(), so that the core tries those that wait once an
// event rather than once a piece.
#pragma once

#include <utility>

#include "daemons/object_store/core/allocator.h"
#include "daemons/object_store/core/demand.h"
#include "daemons/object_store/core/extents.h"
#include "daemons/object_store/core/object_table.h"

namespace rt::store {

class Room {
 public:
  // The arguments must outlive the Room.
  Room(Allocator& allocator, ObjectTable& objects, Extents& extents)
      : allocator_(allocator), objects_(objects), extents_(extents) {}

  // Takes room for the whole demand, evicting copies if that helps, or takes nothing.
  bool place(Demand& demand);
  void give_back(Demand& demand);
  void release(Range range) {
    allocator_.release(range);
    freed_ = true;
  }
  // Ends the lease of an extent. The room of its objects stays theirs.
  void end_extent(uint64_t extent);
  void destroy(Object* object);

  // Notes that requests that wait for room may get some now.
  void note_freed() { freed_ = true; }
  bool freed() const { return freed_; }
  bool take_freed() { return std::exchange(freed_, false); }
  void set_freed(bool freed) { freed_ = freed; }

 private:
  Allocator& allocator_;
  ObjectTable& objects_;
  Extents& extents_;
  bool freed_ = false;
};

}  // namespace rt::store
