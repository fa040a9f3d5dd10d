#include "tests/sim/arena_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace rt::sim {
namespace {

constexpr int64_t kSmall = 16 << 10, kExtent = 64 << 10;
constexpr int64_t kMemory = 30;     // how many of the last objects are asked for
constexpr size_t kMostObjects = 6;  // objects that a client writes or holds
constexpr int64_t kOwnerIsGoneUs = 30'000;

}  // namespace

ArenaClient::ArenaClient(Arena& arena, int host, ArenaStore& store, ArenaSociety& society)
    : ArenaUser(arena, host, store), society_(society) {}

std::string ArenaClient::describe() const {
  return fmt::format(
      "client #{} waits for {} answers, writes {}, holds {} and "
      "owns {} objects",
      number(), asking_, writing_.size(), held_.size(), owned_.size());
}

ObjectId ArenaClient::new_id() {
  return make_object_id(make_task_id(++society_.last_task, JobId()), 1);
}

void ArenaClient::act() {
  if (!is_ready() || writing_.size() + held_.size() >= kMostObjects) return;
  const bool is_mine = arena_.chance(0.5);
  if (is_mine) return put(new_id(), worker());
  if (arena_.chance(0.5) || society_.stored.empty()) return read_some();
  if (arena_.chance(0.1)) {
    // Another attempt of the task, on another worker.
    const auto& [id, owner] = society_.stored[arena_.world.rng.below(society_.stored.size())];
    if (owner != worker() && !held_.contains(id) && !writing_.contains(id) && !wanted_.contains(id))
      put(id, owner);
    return;
  }
  auto other = society_.living.begin();
  std::advance(other, arena_.world.rng.below(society_.living.size()));
  put(new_id(), other->first);
}

// ---- objects that it stores

void ArenaClient::put(const ObjectId& id, const WorkerId& owner) {
  const bool is_small = arena_.chance(society_.small);
  const int64_t size = arena_.between(
      0, is_small ? kSmall
                  : static_cast<int64_t>(society_.largest * static_cast<double>(arena_.capacity)));
  if (is_small) {
    if (pool_.is_nearly_used_up()) want_extent();
    if (auto cut = pool_.cut(size)) return write({id, cut->offset, size, cut->extent, owner});
  }
  std::vector<store::CreateItem> items{{id, size, owner}};
  if (owner == worker() && arena_.chance(0.2)) items.push_back({new_id(), size / 2, owner});
  put_large(std::move(items));
}

void ArenaClient::put_large(std::vector<store::CreateItem> items) {
  for (const store::CreateItem& item : items) writing_.insert(item.id);
  ++asking_;
  create(items, arena_.chance(0.8), [this, items](Result<std::vector<int64_t>> offsets) {
    --asking_;
    if (!is_ready()) return;
    for (size_t i = 0; i < items.size(); ++i) {
      writing_.erase(items[i].id);
      if (offsets) write({items[i].id, (*offsets)[i], items[i].size, 0, items[i].owner});
    }
  });
}

void ArenaClient::want_extent() {
  if (std::exchange(is_leasing_, true)) return;
  ++asking_;
  lease(arena_.between(kSmall, kExtent), [this](Result<store::LeasedExtent> extent) {
    --asking_;
    is_leasing_ = false;
    if (!is_ready() || !extent) return;
    extents_[extent->id] = *extent;
    pool_.add(extent->id, extent->range.offset, extent->range.size);
  });
}

void ArenaClient::write(const store::SealItem& item) {
  writing_.insert(item.id);
  arena_.memory.wrote(client(), {item.offset, item.size}, item.id);
  after(arena_.between(0, 30'000), "object is whole", [this, item] { finish(item); });
}

void ArenaClient::finish(const store::SealItem& item) {
  if (!is_ready()) return;
  writing_.erase(item.id);
  const bool is_wanted = arena_.chance(0.9) && !held_.contains(item.id);
  if (is_wanted) return seal_one(item);
  if (item.extent != 0) {
    pool_.on_aborted(item.extent, item.offset, item.size);
  } else {
    abort(item.id, {item.offset, item.size});
  }
}

void ArenaClient::seal_one(const store::SealItem& item) {
  if (item.extent != 0) pool_.on_sealed(item.extent);
  std::vector<store::LeasedExtent> finished;
  for (uint64_t extent : pool_.take_finished())
    finished.push_back(extents_.extract(extent).mapped());
  seal(item, finished);
  if (item.extent != 0) last_small_ = item;
  hold(item.id);
  society_.stored.emplace_back(item.id, item.owner);
  if (item.owner == worker()) {
    after(arena_.between(0, 40'000), "value is not needed",
          [this, id = item.id] { give_back(id, false); });
    return free_later(item.id);
  }
  after(arena_.between(10, 2'000), "result is told", [this, item] {
    auto owner = society_.living.find(item.owner);
    if (owner != society_.living.end() && owner->second->is_ready())
      return owner->second->stored(item.id, *this);
    after(kOwnerIsGoneUs, "owner is gone", [this, id = item.id] { give_back(id, false); });
  });
}

void ArenaClient::stored(const ObjectId& id, ArenaClient& by) {
  const int64_t takes_us = arena_.between(10, 2'000);
  by.after(takes_us, "owner knows", [&by, id] { by.give_back(id, true); });
  if (!society_.freed.contains(id)) return free_later(id);
  free(id);  // once more: another attempt has stored it
}

void ArenaClient::free_later(const ObjectId& id) {
  owned_.insert(id);
  const int64_t needed_us = arena_.chance(0.3) ? 0 : arena_.between(0, 60'000);
  after(needed_us, "last reference goes", [this, id] {
    owned_.erase(id);
    society_.freed.insert(id);
    if (is_ready()) free(id);
  });
}

void ArenaClient::give_back(const ObjectId& id, bool told) {
  if (!is_ready()) return;
  if (--held_.at(id) == 0) held_.erase(id);
  if (last_small_ && last_small_->id == id) last_small_.reset();
  release({id}, told ? std::vector{id} : std::vector<ObjectId>{});
}

// ---- objects that it reads

void ArenaClient::read_some() {
  std::vector<store::WantedItem> items;
  std::set<ObjectId> seen;
  for (int64_t n = arena_.between(1, 2); n > 0; --n) {
    store::WantedItem item;
    store::Source source;
    Rng& rng = arena_.world.rng;
    if (!arena_.remotes.empty() && arena_.chance(0.5)) {
      auto remote = arena_.remotes.begin();
      std::advance(remote, rng.below(arena_.remotes.size()));
      if (remote->second.freed) continue;
      item.id = remote->first;
      source.node = NodeId::random(rng);
      // The size may be unknown, or that of another attempt.
      source.size = arena_.chance(0.7) ? remote->second.size : arena_.between(0, 1) * 5000;
    } else {
      if (society_.stored.empty()) continue;
      const int64_t known = std::ssize(society_.stored);
      const int64_t at = arena_.between(std::max<int64_t>(0, known - kMemory), known - 1);
      item.id = society_.stored[static_cast<size_t>(at)].first;
      source.node = arena_.node;
    }
    item.sources.push_back(source);
    // A process does not wait for what it stores itself.
    if (!writing_.contains(item.id) && seen.insert(item.id).second)
      items.push_back(std::move(item));
  }
  if (items.empty()) return;
  const int64_t timeouts_us[] = {-1, 0, 20'000, 200'000};
  const int64_t timeout_us = timeouts_us[arena_.world.rng.below(std::size(timeouts_us))];
  ++asking_;
  for (const ObjectId& id : seen) wanted_.insert(id);
  get(items, timeout_us, 0, [this, items](std::vector<store::GetAnswer> answers) {
    --asking_;
    for (const auto& item : items) wanted_.erase(wanted_.find(item.id));
    if (!is_ready()) return;
    for (size_t i = 0; i < items.size(); ++i) {
      if (answers[i].found) got(items[i].id, answers[i]);
    }
  });
}

void ArenaClient::got(const ObjectId& id, const store::GetAnswer& answer) {
  arena_.memory.read(client(), id);
  hold(id);
  const bool tells = answer.untold && arena_.chance(0.7);
  after(arena_.between(0, 40'000), "value is not needed", [this, id, tells] {
    if (!is_ready()) return;
    // An owner that has freed the object frees this copy when it hears of it; one that has ended
    // hears nothing.
    const RemoteValue* value = tells ? &arena_.remotes.at(id) : nullptr;
    if (value && value->freed && !value->owner_is_gone) free(id);
    give_back(id, value && !value->owner_is_gone);
  });
}

// ---- what no client may do

void ArenaClient::break_a_rule() {
  using store::StoreCore, store::ClientId, store::SealItem;
  if (!is_ready()) return;
  const ObjectId other = new_id();
  const WorkerId me = worker();
  switch (arena_.world.rng.below(7)) {
    case 0: {
      if (!last_small_ || !extents_.contains(last_small_->extent)) return;
      // The second object begins where the first one does, or somewhere within it.
      SealItem over = *last_small_;
      over.id = other;
      over.offset += arena_.between(0, (over.size - 1) / store::kUnit) * store::kUnit;
      over.size = 1;
      return break_rules("seals an object over another one",
                         [over](StoreCore& core, ClientId client, Now now) {
                           core.seal(client, {over}, {}, now);
                         });
    }
    case 1: {
      if (extents_.empty()) return;
      const store::LeasedExtent extent = extents_.begin()->second;
      return break_rules("seals an object beyond its extent",
                         [extent, other, me](StoreCore& core, ClientId client, Now now) {
                           const SealItem item{other, extent.range.end() - store::kUnit,
                                               store::kUnit + 1, extent.id, me};
                           core.seal(client, {item}, {}, now);
                         });
    }
    case 2:
      for (const auto& [id, client] : society_.living) {
        if (client == this || client->extents_.empty()) continue;
        const store::LeasedExtent extent = client->extents_.begin()->second;
        return break_rules("seals an object in an extent of another client",
                           [extent, other, me](StoreCore& core, ClientId client, Now now) {
                             const SealItem item{other, extent.range.offset, 1, extent.id, me};
                             core.seal(client, {item}, {}, now);
                           });
      }
      return;
    case 3:
      return break_rules("seals an object that it has not created",
                         [other, me](StoreCore& core, ClientId client, Now now) {
                           core.seal(client, {{other, 0, 100, 0, me}}, {}, now);
                         });
    case 4:
      return break_rules(
          "aborts an object that it has not created",
          [other](StoreCore& core, ClientId client, Now now) { core.abort(client, {other}, now); });
    case 5:
      return break_rules("gives back an object that it does not hold",
                         [other](StoreCore& core, ClientId client, Now now) {
                           core.release(client, {other}, now, {});
                         });
    case 6:
      return break_rules("finishes an extent that it has not",
                         [](StoreCore& core, ClientId client, Now now) {
                           core.seal(client, {}, {uint64_t{1} << 40}, now);
                         });
  }
}

}  // namespace rt::sim
