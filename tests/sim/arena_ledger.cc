#include "tests/sim/arena_ledger.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/ledger.h"

namespace rt::sim {

// ---- memory

void ArenaMemory::wrong(store::ClientId client, const std::string& what) const {
  violation(fmt::format("seed {}: client {} {}", seed_, client, what));
}

template <class F>
void ArenaMemory::for_each(store::Range range, F&& f) {
  const int64_t first = range.offset / store::kUnit;
  const int64_t end = (range.offset + std::max<int64_t>(range.size, 1) - 1) / store::kUnit + 1;
  if (range.offset < 0 || end > std::ssize(units_)) wrong(0, "is given bytes beyond the arena");
  for (int64_t unit = first; unit < end; ++unit) f(units_[static_cast<size_t>(unit)]);
}

void ArenaMemory::granted(store::ClientId client, store::Range range) {
  for_each(range, [&](Unit& unit) {
    if (unit.writer != 0)
      wrong(client, fmt::format("is given room to which client {} writes", unit.writer));
    if (unit.pins > 0) wrong(client, "is given room that somebody reads");
    unit.writer = client;
  });
}

void ArenaMemory::wrote(store::ClientId client, store::Range range, const ObjectId& id) {
  const int value = number_of(id);
  for_each(range, [&](Unit& unit) {
    if (unit.writer != client) wrong(client, "writes where it may not");
    unit.value = value;
  });
}

void ArenaMemory::given_up(store::ClientId client, store::Range range) {
  for_each(range, [&](Unit& unit) {
    if (unit.writer == client) unit.writer = 0;
  });
}

void ArenaMemory::sealed(store::ClientId client, store::Range range, const ObjectId& id) {
  for_each(range, [&](Unit& unit) {
    if (unit.writer != client) wrong(client, "seals what it may not write to");
    unit.writer = 0;
  });
  pin(client, range, id);
}

void ArenaMemory::pinned(store::ClientId client, store::Range range, const ObjectId& id) {
  const int value = number_of(id);
  for_each(range, [&](Unit& unit) {
    if (unit.writer != 0)
      wrong(client, fmt::format("is shown bytes to which client {} writes", unit.writer));
    if (unit.value != value) wrong(client, "is shown bytes of another object");
  });
  pin(client, range, id);
}

void ArenaMemory::pin(store::ClientId client, store::Range range, const ObjectId& id) {
  Pinned& pinned = pins_[client][id];
  if (pinned.count > 0 && pinned.range != range)
    wrong(client, "has pins of two objects with one id");
  pinned.range = range;
  pinned.count++;
  for_each(range, [](Unit& unit) { unit.pins++; });
}

void ArenaMemory::read(store::ClientId client, const ObjectId& id) const {
  const Pinned& pinned = pins_.at(client).at(id);
  // The bytes of an object are changed neither while it is read nor before.
  const_cast<ArenaMemory*>(this)->for_each(pinned.range, [&](const Unit& unit) {
    if (unit.value != values_.at(id)) wrong(client, "reads an object that was written over");
  });
}

void ArenaMemory::unpin(const Pinned& pinned) {
  for_each(pinned.range, [](Unit& unit) { unit.pins--; });
}

void ArenaMemory::released(store::ClientId client, const ObjectId& id) {
  auto& pins = pins_.at(client);
  Pinned& pinned = pins.at(id);
  unpin(pinned);
  if (--pinned.count == 0) pins.erase(id);
}

void ArenaMemory::ended(store::ClientId client) {
  for (Unit& unit : units_) {
    if (unit.writer == client) unit.writer = 0;
  }
  auto pins = pins_.extract(client);
  if (pins.empty()) return;
  for (const auto& [id, pinned] : pins.mapped()) {
    for (int i = 0; i < pinned.count; ++i) unpin(pinned);
  }
}

// ---- objects

void ArenaObjects::sealed(store::ClientId client, const WorkerId& worker,
                          const store::SealItem& item) {
  Stored& stored = all_[item.id];
  stored.seals++;
  stored.owner = item.owner;
  stored.is_copy = client == store::kFetcher;
  stored.owner_knows = !stored.is_copy && (item.owner.is_nil() || item.owner == worker);
  stored.freed |= gone_.contains(item.owner);
  stored.pins.insert(client);
}

void ArenaObjects::told(store::ClientId client, const ObjectId& id) {
  Stored& stored = all_[id];
  if (stored.pins.contains(client)) stored.owner_knows = true;
}

void ArenaObjects::released(store::ClientId client, const ObjectId& id) {
  auto& pins = all_[id].pins;
  if (auto pin = pins.find(client); pin != pins.end()) pins.erase(pin);
}

void ArenaObjects::owner_gone(const WorkerId& owner) {
  gone_.insert(owner);
  for (auto& [id, stored] : all_) {
    if (stored.seals > 0 && stored.owner == owner) stored.freed = true;
  }
}

void ArenaObjects::client_gone(store::ClientId client) {
  for (auto& [id, stored] : all_) stored.pins.erase(client);
}

bool ArenaObjects::must_be_found(const ObjectId& id) const {
  auto known = all_.find(id);
  if (known == all_.end()) return false;
  const Stored& stored = known->second;
  return stored.seals == 1 && !stored.is_copy && !stored.freed &&
         (stored.owner_knows || !stored.pins.empty());
}

bool ArenaObjects::must_be_gone(store::ClientId client, const ObjectId& id) const {
  auto known = all_.find(id);
  if (known == all_.end()) return false;
  const Stored& stored = known->second;
  return stored.seals == 1 && stored.freed && !stored.pins.contains(client);
}

}  // namespace rt::sim
