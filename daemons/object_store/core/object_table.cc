#include "daemons/object_store/core/object_table.h"

#include <algorithm>
#include <utility>

namespace rt::store {

Object* ObjectTable::find(const ObjectId& id) {
  auto it = visible_.find(id);
  return it == visible_.end() ? nullptr : it->second;
}

Object* ObjectTable::create(const CreateItem& item, ClientId creator, Range room) {
  Object& object = objects_.emplace_back();
  object.id = item.id;
  object.owner = item.owner;
  object.creator = creator;
  object.room = room;
  object.size = item.size;
  object.secondary = creator == kFetcher;
  object.self = std::prev(objects_.end());
  used_bytes_ += object.size;
  creating_[item.id]++;
  return &object;
}

Object* ObjectTable::create_sealed(const SealItem& item, ClientId creator, Range room) {
  Object* object = create({item.id, item.size, item.owner}, creator, room);
  object->extent = item.extent;
  seal(object);
  return object;
}

void ObjectTable::seal(Object* object) {
  RT_CHECK(object->state == Object::State::kCreated);
  object->state = Object::State::kSealed;
  auto creating = creating_.find(object->id);
  if (--creating->second == 0) creating_.erase(creating);
  if (!object->free_requested) object->visible = visible_.emplace(object->id, object).second;
  update_evictable(object);
}

void ObjectTable::pin(Object* object) {
  object->pins++;
  update_evictable(object);
}

bool ObjectTable::unpin(Object* object) {
  RT_CHECK(object->pins > 0);
  object->pins--;
  update_evictable(object);
  return object->pins == 0 && !object->visible && object->state == Object::State::kSealed;
}

bool ObjectTable::request_free(Object* object) {
  object->free_requested = true;
  if (object->visible) {
    visible_.erase(object->id);
    object->visible = false;
  }
  update_evictable(object);
  return object->pins == 0 && object->state == Object::State::kSealed;
}

void ObjectTable::erase(Object* object) {
  RT_CHECK(object->pins == 0);
  if (object->state == Object::State::kCreated) {
    auto creating = creating_.find(object->id);
    if (--creating->second == 0) creating_.erase(creating);
  }
  if (object->visible) visible_.erase(object->id);
  object->visible = false;
  update_evictable(object);
  used_bytes_ -= object->size;
  objects_.erase(object->self);
}

void ObjectTable::update_evictable(Object* object) {
  bool should = object->secondary && object->visible && object->pins == 0;
  if (should == object->evictable) return;
  object->evictable = should;
  if (should) {
    object->evictable_at = evictable_.insert(evictable_.end(), object);
    evictable_bytes_ += object->room.size;
  } else {
    evictable_.erase(object->evictable_at);
    evictable_bytes_ -= object->room.size;
  }
}

std::vector<Holder> ObjectTable::holders() const {
  std::unordered_map<WorkerId, Holder> by_worker;
  for (const Object& object : objects_) {
    Holder& holder = by_worker[object.owner];
    holder.bytes += object.size;
    holder.objects++;
  }
  std::vector<Holder> sorted;
  for (auto& [worker, holder] : by_worker) {
    holder.worker = worker;
    sorted.push_back(holder);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Holder& a, const Holder& b) {
    return std::pair(-a.bytes, a.worker) < std::pair(-b.bytes, b.worker);
  });
  return sorted;
}

void ObjectTable::check_invariants() const {
  size_t visible = 0, creating = 0, evictable = 0;
  int64_t used = 0, evictable_bytes = 0;
  for (const Object& object : objects_) {
    used += object.size;
    RT_CHECK(object.size <= object.room.size);
    if (object.state == Object::State::kCreated) {
      creating++;
      RT_CHECK(!object.visible && object.pins == 0);
    } else {
      // Otherwise nothing would ever free the object.
      RT_CHECK(object.visible || object.pins > 0);
    }
    if (object.visible) {
      visible++;
      auto it = visible_.find(object.id);
      RT_CHECK(it != visible_.end() && it->second == &object && !object.free_requested);
    }
    RT_CHECK(object.evictable == (object.secondary && object.visible && object.pins == 0));
    if (object.evictable) {
      evictable++;
      evictable_bytes += object.room.size;
    }
  }
  size_t creating_counted = 0;
  for (auto& [id, count] : creating_) creating_counted += static_cast<size_t>(count);
  RT_CHECK(visible == visible_.size() && creating == creating_counted &&
           evictable == evictable_.size());
  RT_CHECK(used == used_bytes_ && evictable_bytes == evictable_bytes_);
}

}  // namespace rt::store
