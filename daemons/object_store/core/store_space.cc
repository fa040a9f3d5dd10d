// StoreCore's room in the arena: finding it, making it by eviction, reserving its pages, and the
// line of requests that wait for it.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "daemons/object_store/core/report.h"
#include "daemons/object_store/core/store_core.h"

namespace rt::store {

namespace {

constexpr int64_t kMinExtent = 256 * 1024;
constexpr int64_t kShortAgainUs = 500'000;

}  // namespace

void StoreCore::create(ClientId id, CallId call, std::vector<CreateItem> items, bool wait,
                       Now now) {
  Client* client = clients_.active(id);
  if (!client) return;
  if (items.empty()) return sink_.reply_create(id, call, std::vector<int64_t>{});
  Demand demand;
  demand.client = id;
  demand.call = call;
  demand.wait = wait;
  demand.since_us = now.steady_us;
  demand.deadline_us = now.steady_us + options_.create_wait_us;
  std::unordered_set<ObjectId> seen;
  for (const CreateItem& item : items) {
    if (item.size < 0)
      return sink_.reply_create(id, call,
                                make_error(Code::kInvalid, fmt::format("object {} of {} bytes",
                                                                       item.id.hex(), item.size)));
    if (client->unsealed.count(item.id) || !seen.insert(item.id).second)
      return sink_.reply_create(
          id, call,
          make_error(
              Code::kAlreadyExists,
              fmt::format("object {} is being created by this client already", item.id.hex())));
    if (item.size > allocator_.capacity() - demand.bytes)
      return sink_.reply_create(id, call, never_fits(item.size, allocator_.capacity()));
    demand.bytes += round_up(std::max<int64_t>(item.size, 1), kPage);
  }
  demand.items = std::move(items);
  if (auto fetch = fetching_.find(demand.items[0].id);
      id == kFetcher && fetch != fetching_.end() && fetch->second.room.size > 0) {
    // This room was set aside, unless the object has another size than its sources said.
    Range room = std::exchange(fetch->second.room, {});
    if (room.size == demand.bytes) {
      demand.ranges.push_back(room);
      reserving_.push_back(std::move(demand));
      return serve_room_demands(now);
    }
    room_.release(room);
  }
  submit(std::move(demand), now);
}

void StoreCore::lease_extent(ClientId id, CallId call, int64_t size, Now now) {
  if (!clients_.active(id)) return;
  if (size <= 0)
    return sink_.reply_lease(
        id, call,
        make_error(
            Code::kInvalid,
            fmt::format("an extent of {} bytes was requested: the size must be positive", size)));
  Demand demand;
  demand.client = id;
  demand.call = call;
  demand.kind = Demand::Kind::kExtent;
  // Leased extents that are half empty hold room that no other client can use, so they are small,
  // and none is given when room is tight (see Room::place()).
  demand.bytes = round_up(std::min(size, std::max(kMinExtent, allocator_.capacity() / 64)), kPage);
  submit(std::move(demand), now);
}

void StoreCore::submit(Demand demand, Now now) {
  lift_limit(now);
  if (waiting_.size() + reserving_.size() >= options_.max_waiting)
    return refuse(
        demand, too_many_waiting(waiting_.size() + reserving_.size(), "room", options_.max_waiting),
        now);
  if (room_.place(demand)) {
    reserving_.push_back(std::move(demand));
  } else if (demand.wait) {
    waiting_.push_back(std::move(demand));
  } else {
    refuse(demand, full(demand.bytes), now);
  }
  serve_room_demands(now);
}

void StoreCore::finish(Demand& demand, Now now) {
  if (demand.kind == Demand::Kind::kFetch) {
    for (size_t i = 0; i < demand.items.size(); i++) {
      fetching_.at(demand.items[i].id).room = demand.ranges[i];
      sink_.fetch(demand.items[i].id, demand.sources[i], demand.first);
    }
    return;
  }
  Client& client = clients_.at(demand.client);
  if (demand.kind == Demand::Kind::kExtent) {
    uint64_t extent = extents_.lease(demand.client, demand.ranges[0]);
    client.extents.insert(extent);
    return sink_.reply_lease(demand.client, demand.call, LeasedExtent{extent, demand.ranges[0]});
  }
  std::vector<int64_t> offsets;
  for (const CreateItem& item : demand.items) {
    // Two requests of one client for the same object may have waited side by side.
    if (client.unsealed.count(item.id)) {
      room_.give_back(demand);
      return refuse(demand,
                    make_error(Code::kAlreadyExists,
                               fmt::format("object {} is being created by this client already",
                                           item.id.hex())),
                    now);
    }
  }
  for (size_t i = 0; i < demand.items.size(); i++) {
    client.unsealed[demand.items[i].id] =
        objects_.create(demand.items[i], demand.client, demand.ranges[i]);
    offsets.push_back(demand.ranges[i].offset);
  }
  sink_.reply_create(demand.client, demand.call, std::move(offsets));
}

void StoreCore::refuse(const Demand& demand, Error error, Now now) {
  switch (demand.kind) {
    case Demand::Kind::kObjects:
      return sink_.reply_create(demand.client, demand.call, std::move(error));
    case Demand::Kind::kExtent:
      return sink_.reply_lease(demand.client, demand.call, std::move(error));
    case Demand::Kind::kFetch:
      for (const CreateItem& item : demand.items) fail_fetch(item.id, error, now);
  }
}

void StoreCore::serve_room_demands(Now now) {
  if (room_.take_freed()) {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      auto next = std::next(it);
      bool wanted = it->kind != Demand::Kind::kFetch ||
                    std::any_of(it->items.begin(), it->items.end(),
                                [this](const auto& item) { return getters_.is_awaited(item.id); });
      if (!wanted) {
        for (const CreateItem& item : it->items) fetching_.erase(item.id);
        waiting_.erase(it);
      } else if (room_.place(*it)) {
        reserving_.splice(reserving_.end(), waiting_, it);
      }
      it = next;
    }
    // Evictions and failed attempts have set the mark, but everything that they freed has been
    // tried, unless the end of a task's wait lets others go on.
    room_.set_freed(serve_line(now));
  }
  for (auto it = reserving_.begin(); it != reserving_.end();) {
    bool ready = std::all_of(it->ranges.begin(), it->ranges.end(),
                             [this](Range range) { return pages_.exist(range); });
    if (!ready) {
      ++it;
      continue;
    }
    Demand demand = std::move(*it);
    it = reserving_.erase(it);
    finish(demand, now);
  }
  if (!pages_.asked()) {
    int64_t wanted = 0;
    for (const Demand& demand : reserving_) {
      for (Range range : demand.ranges) wanted = std::max(wanted, range.end());
    }
    if (wanted > pages_.reserved()) reserve_ahead(round_up(wanted, options_.reserve_step));
  }
  if (room_.freed()) return serve_room_demands(now);
  if ((!waiting_.empty() || !arguments_.is_empty()) && now.steady_us >= next_short_us_) {
    next_short_us_ = now.steady_us + kShortAgainUs;
    sink_.tell({});
  }
}

void StoreCore::reserve_ahead(int64_t up_to) {
  if (auto asked = pages_.ask(up_to)) sink_.reserve(*asked);
}

void StoreCore::on_reserved(int64_t up_to, const Status& status, Now now) {
  pages_.answered(up_to, status, now);
  if (!status) {
    allocator_.set_limit(pages_.reserved());
    for (auto it = reserving_.begin(); it != reserving_.end();) {
      auto next = std::next(it);
      bool beyond = std::any_of(it->ranges.begin(), it->ranges.end(),
                                [this](Range range) { return !pages_.exist(range); });
      if (beyond) {
        room_.give_back(*it);
        if (it->wait) {
          waiting_.splice(waiting_.end(), reserving_, it);
        } else {
          refuse(*it, full(it->bytes), now);
          reserving_.erase(it);
        }
      }
      it = next;
    }
  }
  serve_room_demands(now);
}

// Forgets that the file system had no pages left, some time later.
void StoreCore::lift_limit(Now now) {
  if (!pages_.forget_shortage(now)) return;
  allocator_.set_limit(allocator_.capacity());
  room_.note_freed();
}

int64_t StoreCore::next_tick_us() const {
  std::optional<int64_t> next = getters_.next_timer();
  auto consider = [&next](int64_t at) { next = std::min(next.value_or(kNoDeadline), at); };
  if (arguments_.stuck_since_us > 0)
    consider(std::max(arguments_.stuck_since_us, arguments_.line().front().joined_us) +
             options_.create_wait_us);
  if (!waiting_.empty() || !arguments_.is_empty()) {
    for (auto& demand : waiting_) consider(demand.deadline_us);
    consider(next_short_us_);
    if (pages_.shortage()) consider(pages_.retry_us());
  }
  return next.value_or(-1);
}

}  // namespace rt::store
