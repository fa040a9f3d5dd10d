// Every object in the arena with its place, state, owner and pins.
//
// Several sealed objects may have the same id (a retried task stored its result again, or a fetch
// and a local put met), and only one of them is visible, that is, found by the id. Another one
// stays with the clients that hold it and is destroyed with their last pin, because views that were
// handed out never move. A pointer to an object is valid until erase().
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
  // The memory that it takes, in the arena. It may be larger than the object.
  Range room;
  int64_t size = 0;  // The bytes of the object itself.
  // The memory of a client (Extents) that the room was cut from; 0 if there is none.
  uint64_t extent = 0;
  bool secondary = false;  // A copy of an object that other nodes have; it may be evicted.
  // The owner knows that the object is here, so that it will free it. If not (the result of a task
  // that has not replied, a copy that was just fetched), StoreCore frees the object with its last
  // pin. StoreCore sets this when a client says that it has told the owner.
  bool owner_knows = false;
  bool visible = false;         // Whether the object is found by its id.
  bool free_requested = false;  // Whether the object is destroyed with its last pin.
  uint32_t pins = 0;

  // The rest is ObjectTable's: the places of the object in its lists, and whether it is in the
  // eviction list, as it is while it is secondary, visible and unpinned.
  std::list<Object>::iterator self;
  std::list<Object*>::iterator evictable_at;
  bool evictable = false;
};

class ObjectTable {
 public:
  // Returns the visible object, or null.
  Object* find(const ObjectId& id);
  bool has(const ObjectId& id) const { return visible_.contains(id); }
  bool is_being_created(const ObjectId& id) const { return creating_.count(id) > 0; }

  // Adds an object that its creator still writes.
  Object* create(const CreateItem& item, ClientId creator, Range room);
  // Adds an object that is complete, as create() and seal() do.
  Object* create_sealed(const SealItem& item, ClientId creator, Range room);
  // Changes kCreated to kSealed. The object becomes visible unless another one with its id is, or
  // it was freed already. The caller pins it for the creator before anything else happens, because
  // an object that is neither visible nor pinned is destroyed by nobody.
  void seal(Object* object);
  void pin(Object* object);
  // Returns true if that was the last pin and the object is invisible: the caller must destroy it.
  [[nodiscard]] bool unpin(Object* object);
  // Makes the object invisible, also when it is sealed later. Returns true if it has no pins and is
  // sealed: the caller must destroy it.
  [[nodiscard]] bool request_free(Object* object);
  // Forgets the object. The caller releases its room.
  void erase(Object* object);

  Object* oldest_evictable() { return evictable_.empty() ? nullptr : evictable_.front(); }
  int64_t evictable_bytes() const { return evictable_bytes_; }
  // The sizes of all objects, without what their rooms have beyond that.
  int64_t used_bytes() const { return used_bytes_; }
  size_t size() const { return objects_.size(); }
  // Returns the owners of all objects, most bytes first. The table does not know their processes,
  // so Holder::pid stays 0.
  std::vector<Holder> holders() const;
  std::list<Object>& all() { return objects_; }
  const std::list<Object>& all() const { return objects_; }
  void check_invariants() const;

 private:
  void update_evictable(Object* object);

  std::list<Object> objects_;
  std::unordered_map<ObjectId, Object*> visible_;
  std::unordered_map<ObjectId, int> creating_;  // How many objects of this id are kCreated.
  std::list<Object*> evictable_;                // The one that was unpinned first comes first.
  int64_t evictable_bytes_ = 0;
  int64_t used_bytes_ = 0;
};

}  // namespace rt::store
