// Every object in the arena: its place, state, owner and pins.
//
// Of one id at most one sealed object is visible. A second one (a retried task stored its result
// again, a fetch and a local put met) stays with those who hold it and goes with their last pin:
// views that were handed out never move.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "daemons/object_store/core/types.h"

namespace rt::store {

struct Object {
  enum class State { kCreated, kSealed };

  ObjectId id;
  WorkerId owner;
  ClientId creator = 0;
  State state = State::kCreated;
  Range room;  // what it takes of the arena or of its extent
  int64_t size = 0;
  uint64_t extent = 0;          // 0: its room is its own
  bool secondary = false;       // a copy of what other nodes have: may be evicted
  bool visible = false;         // found by its id
  bool free_requested = false;  // goes with its last pin
  uint32_t pins = 0;

  std::list<Object>::iterator self;
  std::list<Object*>::iterator evictable_at;
  bool evictable = false;  // secondary, unpinned: in the eviction list
};

class ObjectTable {
 public:
  Object* find(const ObjectId& id);  // the visible one
  bool is_being_created(const ObjectId& id) const { return creating_.count(id) > 0; }

  Object* create(const CreateItem& item, ClientId creator, Range room);
  Object* create_sealed(const SealItem& item, ClientId creator, Range room);
  // kCreated -> kSealed; visible when no other object of this id is.
  void seal(Object* object);
  void pin(Object* object);
  // True when the object is to be destroyed now: it was its last pin and nobody can find it any
  // more.
  [[nodiscard]] bool unpin(Object* object);
  // No longer found by its id. True when it is to be destroyed now.
  [[nodiscard]] bool request_free(Object* object);
  // The caller has taken care of its room.
  void erase(Object* object);

  Object* oldest_evictable() { return evictable_.empty() ? nullptr : evictable_.front(); }
  int64_t evictable_bytes() const { return evictable_bytes_; }
  int64_t used_bytes() const { return used_bytes_; }
  size_t size() const { return objects_.size(); }
  std::list<Object>& all() { return objects_; }
  const std::list<Object>& all() const { return objects_; }
  void check_invariants() const;

 private:
  void update_evictable(Object* object);

  std::list<Object> objects_;
  std::unordered_map<ObjectId, Object*> visible_;
  std::unordered_map<ObjectId, int> creating_;
  std::list<Object*> evictable_;  // least recently used first
  int64_t evictable_bytes_ = 0;
  int64_t used_bytes_ = 0;
};

}  // namespace rt::store
