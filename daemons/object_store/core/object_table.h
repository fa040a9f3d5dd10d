// Every object in the arena with its place, state, owner and pins.
//
// At most one of all sealed objects with one id is visible. A second one (a retried task stored
// its result again, or a fetch and a local put met) stays with the clients that hold it and is
// destroyed with their last pin, because views that were handed out never move.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "daemons/object_store/core/types.h"

namespace rt::store {

struct Object {
  enum class State { kCreated, kSealed };

  ObjectId id;
  WorkerId owner;
  ClientId creator = 0;
  State state = State::kCreated;
  Range room;  // The room that it takes in the arena or its extent.
  int64_t size = 0;
  // 0 if its room belongs to no extent.
  uint64_t extent = 0;
  bool secondary = false;  // A copy of an object that other nodes have; it may be evicted.
  // The owner knows that the object is here, so that it will free it. If not (the result of a task
  // that has not replied, a copy that was just fetched), StoreCore frees the object with its last
  // pin.
  bool owner_knows = false;
  bool visible = false;         // Whether the object is found by its id.
  bool free_requested = false;  // Whether the object is destroyed with its last pin.
  uint32_t pins = 0;

  std::list<Object>::iterator self;
  std::list<Object*>::iterator evictable_at;
  // Set while it is secondary, visible and unpinned, and so in the eviction list.
  bool evictable = false;
};

class ObjectTable {
 public:
  // Returns the visible object, or null.
  Object* find(const ObjectId& id);
  bool has(const ObjectId& id) const { return visible_.contains(id); }
  bool is_being_created(const ObjectId& id) const { return creating_.count(id) > 0; }

  Object* create(const CreateItem& item, ClientId creator, Range room);
  Object* create_sealed(const SealItem& item, ClientId creator, Range room);
  // Changes kCreated to kSealed. The object becomes visible unless another one with its id is, or
  // it was freed already.
  void seal(Object* object);
  void pin(Object* object);
  // Returns true if that was the last pin and the object is invisible: the caller must destroy it.
  [[nodiscard]] bool unpin(Object* object);
  // Makes the object invisible. Returns true if it has no pins and is sealed: the caller must
  // destroy it.
  [[nodiscard]] bool request_free(Object* object);
  // Forgets the object. The caller releases its room.
  void erase(Object* object);

  Object* oldest_evictable() { return evictable_.empty() ? nullptr : evictable_.front(); }
  int64_t evictable_bytes() const { return evictable_bytes_; }
  int64_t used_bytes() const { return used_bytes_; }
  size_t size() const { return objects_.size(); }
  // Returns the owners of all objects, most bytes first, without their process ids.
  std::vector<Holder> holders() const;
  std::list<Object>& all() { return objects_; }
  const std::list<Object>& all() const { return objects_; }
  void check_invariants() const;

 private:
  void update_evictable(Object* object);

  std::list<Object> objects_;
  std::unordered_map<ObjectId, Object*> visible_;
  std::unordered_map<ObjectId, int> creating_;
  std::list<Object*> evictable_;  // The least recently used one comes first.
  int64_t evictable_bytes_ = 0;
  int64_t used_bytes_ = 0;
};

}  // namespace rt::store
