#include "daemons/object_store/core/store_core.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace rt::store {

StoreCore::StoreCore(Options options, StoreSink& sink)
    : options_(std::move(options)),
      sink_(sink),
      allocator_(options_.capacity / kPage * kPage),
      pages_(allocator_.capacity()),
      early_frees_(options_.max_early_frees),
      gone_owners_(options_.max_early_frees) {}

void StoreCore::condemn(ClientId client, Error why) {
  clients_.at(client).condemned = true;
  sink_.disconnect(client, std::move(why));
}

void StoreCore::client_gone(ClientId id, Now now) {
  Client* gone = clients_.find(id);
  if (!gone || id < kFirstClient) return;
  Client& client = *gone;
  client.condemned = true;
  arguments_.client_gone(id);
  if (!arguments_.is_empty()) room_.note_freed();
  for (uint64_t request : getters_.of_client(id)) getters_.remove(request);
  for (auto* list : {&waiting_, &reserving_}) {
    for (auto demand = list->begin(); demand != list->end();) {
      if (demand->client != id) {
        ++demand;
        continue;
      }
      room_.give_back(*demand);
      demand = list->erase(demand);
    }
  }
  auto unsealed = std::move(client.unsealed);
  client.unsealed.clear();
  for (auto& [object_id, object] : unsealed) {
    room_.destroy(object);
    try_answer_all(object_id, now);
  }
  for (uint64_t extent : client.extents) room_.end_extent(extent);
  std::vector<std::pair<ObjectId, uint32_t>> pins;
  for (auto& [object_id, pin] : client.pins) pins.emplace_back(object_id, pin.count);
  for (auto& [object_id, count] : pins) unpin(client, object_id, count);
  clients_.erase(id);
  serve_room_demands(now);
}

void StoreCore::seal(ClientId id, const std::vector<SealItem>& items,
                     const std::vector<uint64_t>& finished, Now now) {
  Client* client = clients_.active(id);
  if (!client) return;
  for (const SealItem& item : items) {
    Object* object = nullptr;
    if (item.extent != 0) {
      auto room = extents_.check(id, item);
      if (!room) return condemn(id, std::move(room).error());
      object = objects_.create_sealed(item, id, *room);
      extents_.add(object);
    } else {
      auto created = client->unsealed.find(item.id);
      if (created == client->unsealed.end() || created->second->room.offset != item.offset ||
          created->second->size != item.size) {
        return condemn(id,
                       make_error(Code::kInvalid,
                                  fmt::format("sealed object {} at {}+{}, which it had not created",
                                              item.id.hex(), item.offset, item.size)));
      }
      object = created->second;
      client->unsealed.erase(created);
      objects_.seal(object);
    }
    bool freed = object->free_requested;
    if (auto fetch = id == kFetcher ? fetching_.extract(item.id) : decltype(fetching_)::node_type())
      freed |= fetch.mapped().freed;
    auto held = client->pins.find(item.id);
    if (held != client->pins.end()) {
      // The client holds an older object with this id. Then the core could not tell which of the
      // two the client releases.
      if (objects_.request_free(object)) room_.destroy(object);
      return condemn(id,
                     make_error(Code::kInvalid,
                                fmt::format("sealed object {} while holding another one of that id",
                                            item.id.hex())));
    }
    pin(*client, object);
    object->owner_knows =
        id != kFetcher && (object->owner.is_nil() || object->owner == client->worker);
    // The object is then freed with the sealer's pin.
    freed |= early_frees_.take(item.id, now) || gone_owners_.contains(object->owner);
    if (freed) {
      RT_CHECK(!objects_.request_free(object));
      getters_.fail_fetch(
          item.id, make_error(Code::kObjectLost,
                              fmt::format("object {} was freed by its owner", item.id.hex())));
    }
    try_answer_all(item.id, now);
  }
  for (uint64_t extent : finished) {
    if (!extents_.is_leased_to(extent, id))
      return condemn(
          id, make_error(Code::kInvalid,
                         fmt::format("finished extent {}, which is not leased to it", extent)));
    client->extents.erase(extent);
    room_.end_extent(extent);
  }
  serve_room_demands(now);
}

void StoreCore::abort(ClientId id, const std::vector<ObjectId>& ids, Now now) {
  Client* client = clients_.active(id);
  if (!client) return;
  for (const ObjectId& object_id : ids) {
    auto it = client->unsealed.find(object_id);
    if (it == client->unsealed.end())
      return condemn(
          id, make_error(Code::kInvalid, fmt::format("aborted object {}, which it had not created",
                                                     object_id.hex())));
    Object* object = it->second;
    client->unsealed.erase(it);
    room_.destroy(object);
    try_answer_all(object_id, now);
  }
  serve_room_demands(now);
}

// Answers one wanted object if that is possible. Otherwise the item waits, and what it waits for
// is started. The caller completes the request.
void StoreCore::try_answer(Getters::Place place, Now now) {
  Getters::Request& request = *getters_.find(place.request);
  Getters::Item& item = request.items[place.item];
  Client& client = clients_.at(request.client);
  auto held = client.pins.find(item.id);
  Object* object = held != client.pins.end() ? held->second.object : objects_.find(item.id);
  if (object) {
    pin(client, object);
    return getters_.answer(place, {true,
                                   object->room.offset,
                                   object->size,
                                   object->owner,
                                   {},
                                   object->secondary && !object->owner_knows});
  }
  getters_.wait(place, item.id);
  if (objects_.is_being_created(item.id) || fetching_.count(item.id)) return;
  if (!item.sources.empty() && !item.fetch_failed) {
    if (request.deadline_us > now.steady_us)
      start_fetch(item.id, item.sources, request.ticket == 0, now);
    return;
  }
  if (item.grace_until_us > now.steady_us) return getters_.set_timer(item.grace_until_us, place);
  GetAnswer answer;
  answer.error = item.fetch_failed
                     ? item.error
                     : make_error(Code::kObjectLost,
                                  fmt::format("object {} is lost: it is not in this node's store, "
                                              "and no other node is known to have it",
                                              item.id.hex()));
  getters_.answer(place, std::move(answer));
}

void StoreCore::try_answer_all(const ObjectId& id, Now now) {
  for (Getters::Place place : getters_.waiting_for(id)) {
    if (!getters_.find(place.request)) continue;
    try_answer(place, now);
    if (getters_.find(place.request)->open == 0) complete(place.request);
  }
}

void StoreCore::complete(uint64_t id) {
  Getters::Request request = getters_.remove(id);
  std::vector<GetAnswer> answers;
  answers.reserve(request.items.size());
  for (Getters::Item& item : request.items) {
    if (!item.answer.found && item.answer.error.message.empty())
      item.answer.error =
          make_error(Code::kTimeout, fmt::format("timed out waiting for object {}", item.id.hex()));
    answers.push_back(std::move(item.answer));
  }
  sink_.reply_get(request.client, request.call, std::move(answers));
}

void StoreCore::release(ClientId id, const std::vector<ObjectId>& ids, Now now,
                        const std::vector<ObjectId>& told) {
  Client* client = clients_.active(id);
  if (!client) return;
  for (const ObjectId& object_id : told) {
    if (!client->pins.contains(object_id)) continue;
    // Another attempt of the same task may have stored the visible object.
    if (Object* visible = objects_.find(object_id)) visible->owner_knows = true;
  }
  for (const ObjectId& object_id : ids) {
    if (!unpin(*client, object_id, 1))
      return condemn(
          id, make_error(Code::kInvalid, fmt::format("released object {}, which it did not hold",
                                                     object_id.hex())));
  }
  serve_room_demands(now);
}

void StoreCore::free(const std::vector<ObjectId>& ids, Now now) {
  for (const ObjectId& id : ids) {
    Object* visible = objects_.find(id);
    const bool creating = objects_.is_being_created(id);
    auto fetch = fetching_.find(id);
    // The fetch itself remembers the free, because it may last for longer than early frees are
    // remembered.
    if (fetch != fetching_.end()) fetch->second.freed = true;
    if (creating) {
      for (Object& object : objects_.all()) {
        if (object.id == id && object.state == Object::State::kCreated)
          object.free_requested = true;
      }
    }
    if (visible && objects_.request_free(visible)) room_.destroy(visible);
    if (!visible && !creating && fetch == fetching_.end())
      early_frees_.add(id, now.steady_us + options_.seal_grace_us);
  }
  serve_room_demands(now);
}

void StoreCore::free_owned_by(const Ended& ended, Now now) {
  std::set<WorkerId> dead(ended.workers.begin(), ended.workers.end());
  std::set<JobId> over(ended.jobs.begin(), ended.jobs.end());
  std::set<uint64_t> dead_nodes;
  for (const NodeId& node : ended.nodes) dead_nodes.insert(node_mark(node));
  // Before the object has arrived, nobody knows its owner. So no owner is forgotten that has gone
  // since the oldest fetch began.
  int64_t forget_us = now.steady_us;
  for (auto& [id, fetch] : fetching_) {
    fetch.freed |= over.count(job_of(task_of(id))) > 0;
    forget_us = std::min(forget_us, fetch.since_us + options_.gone_owner_us - 1);
  }
  gone_owners_.forget(forget_us);
  const int64_t until_us = now.steady_us + options_.gone_owner_us;
  for (const WorkerId& worker : ended.workers) gone_owners_.add(worker, until_us);
  for (const NodeId& node : ended.nodes) gone_owners_.add(node, until_us);
  auto& all = objects_.all();
  for (auto it = all.begin(); it != all.end();) {
    Object* object = &*it++;
    if (dead.count(object->owner) || dead_nodes.count(node_mark(object->owner)) ||
        over.count(job_of(task_of(object->id)))) {
      if (objects_.request_free(object)) room_.destroy(object);
    }
  }
  serve_room_demands(now);
}

bool StoreCore::contains(const ObjectId& id) const { return objects_.has(id); }

void StoreCore::on_fetch_failed(const ObjectId& id, const Error& error, Now now) {
  fail_fetch(id, error, now);
  serve_room_demands(now);
}

void StoreCore::pin(Client& client, Object* object) {
  Pin& held = client.pins[object->id];
  RT_CHECK(held.count == 0 || held.object == object);
  held.object = object;
  held.count++;
  objects_.pin(object);
}

bool StoreCore::unpin(Client& client, const ObjectId& id, uint32_t count) {
  auto it = client.pins.find(id);
  if (it == client.pins.end() || it->second.count < count) return false;
  Object* object = it->second.object;
  it->second.count -= count;
  if (it->second.count == 0) client.pins.erase(it);
  bool last = false;
  while (count-- > 0) last = objects_.unpin(object);
  // A copy without pins can be evicted.
  if (object->evictable) room_.note_freed();
  if (object->pins == 0 && object->visible && !object->owner_knows)
    last = objects_.request_free(object);
  if (last) room_.destroy(object);
  return true;
}

void StoreCore::tick(Now now) {
  while (auto due = getters_.next_due(now)) {
    if (due->item == Getters::kWhole) {
      complete(due->request);
      continue;
    }
    try_answer(*due, now);
    if (getters_.find(due->request)->open == 0) complete(due->request);
  }
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->deadline_us > now.steady_us) {
      ++it;
      continue;
    }
    Demand late = std::move(*it);
    it = waiting_.erase(it);
    if (room_.place(late)) {
      reserving_.push_back(std::move(late));
    } else if (late.kind == Demand::Kind::kFetch && room_will_come(late.bytes)) {
      late.deadline_us = now.steady_us + options_.create_wait_us;
      waiting_.insert(it, std::move(late));
    } else {
      refuse(late, full(late.bytes), now);
    }
  }
  if (!arguments_.is_empty()) room_.note_freed();
  lift_limit(now);
  serve_room_demands(now);
}

void StoreCore::check_invariants() const {
  allocator_.check_invariants();
  objects_.check_invariants();
  extents_.check_invariants();
  getters_.check_invariants();
  arguments_.check_invariants();
  for (const ArgumentLine::Entry& entry : arguments_.line())
    RT_CHECK(clients_.all().contains(entry.client));
  // The arena consists exactly of free ranges, extents, objects outside extents, and the room of
  // demands.
  std::map<int64_t, int64_t> pieces = allocator_.free_ranges();
  auto add = [&pieces](Range range) {
    RT_CHECK(range.size > 0 && pieces.emplace(range.offset, range.size).second);
  };
  std::unordered_map<const Object*, uint32_t> pins;
  std::unordered_set<const Object*> unsealed;
  for (auto& [id, extent] : extents_.all()) {
    add(extent.range);
    RT_CHECK(clients_.at(extent.client).extents.count(id) == 1);
  }
  for (auto& object : objects_.all()) {
    if (object.extent == 0) add(object.room);
  }
  for (auto& demand : waiting_) RT_CHECK(demand.ranges.empty());
  for (auto& demand : reserving_) {
    for (Range range : demand.ranges) add(range);
  }
  for (auto& [id, fetch] : fetching_) {
    if (fetch.room.size > 0) add(fetch.room);
  }
  int64_t at = 0;
  for (auto [offset, size] : pieces) {
    RT_CHECK(offset == at);
    at += size;
  }
  RT_CHECK(at == allocator_.capacity());
  for (auto& [id, client] : clients_.all()) {
    for (auto& [object_id, pin] : client.pins) {
      RT_CHECK(pin.count > 0 && pin.object->id == object_id);
      pins[pin.object] += pin.count;
    }
    for (auto& [object_id, object] : client.unsealed) {
      RT_CHECK(object->state == Object::State::kCreated && object->creator == id);
      unsealed.insert(object);
    }
  }
  for (auto& object : objects_.all()) {
    RT_CHECK(object.pins == pins[&object]);
    RT_CHECK((object.state == Object::State::kCreated) == (unsealed.count(&object) == 1));
    // Clients must never be shown memory without pages.
    if (object.extent == 0) RT_CHECK(pages_.exist(object.room));
  }
}

}  // namespace rt::store
