// StoreCore's requests for objects: what is fetched when, and the line in which the arguments of
// tasks wait for room.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "common/base/remedies.h"
#include "daemons/object_store/core/report.h"
#include "daemons/object_store/core/store_core.h"

namespace rt::store {

namespace {

// Returns the size that a source says, or 0 if none says it.
int64_t known_size(const std::vector<Source>& sources) {
  int64_t size = 0;
  for (const Source& source : sources) size = std::max(size, source.size);
  return size;
}

int64_t room_of(int64_t size) { return round_up(std::max<int64_t>(size, 1), kPage); }

}  // namespace

void StoreCore::get(ClientId id, CallId call, std::vector<WantedItem> items, int64_t timeout_us,
                    Now now, Ticket ticket) {
  if (!clients_.active(id)) return;
  if (ticket != 0 && arguments_.is_known(id, ticket))
    return condemn(
        id, make_error(Code::kInvalid, fmt::format("asked twice for the arguments {}", ticket)));
  if (items.empty()) return sink_.reply_get(id, call, {});
  auto refuse_all = [&](Error error) {
    GetAnswer answer;
    answer.error = std::move(error);
    sink_.reply_get(id, call, std::vector<GetAnswer>(items.size(), answer));
  };
  if (getters_.size() >= options_.max_waiting)
    return refuse_all(too_many_waiting(getters_.size(), "objects", options_.max_waiting));
  Getters::Request request;
  request.client = id;
  request.call = call;
  request.ticket = ticket;
  request.in_line = ticket != 0;
  request.timeout_us = timeout_us;
  int64_t together = 0;
  std::unordered_set<ObjectId> seen;
  for (WantedItem& wanted : items) {
    if (ticket != 0 && seen.insert(wanted.id).second) {
      Object* here = objects_.find(wanted.id);
      together += here ? here->size : known_size(wanted.sources);
    }
    Getters::Item& item = request.items.emplace_back();
    item.id = wanted.id;
    for (Source& source : wanted.sources) {
      if (!options_.node.is_nil() && source.node == options_.node) {
        item.grace_until_us = now.steady_us + options_.seal_grace_us;
      } else {
        item.sources.push_back(std::move(source));
      }
    }
  }
  if (together > allocator_.capacity())
    return refuse_all(make_error(
        Code::kObjectStoreFull,
        fmt::format("the arguments of the task can never be here together: they have {} bytes, and "
                    "this node's object store holds {}. Pass less to one task, or {}",
                    together, allocator_.capacity(), kMoreStoreMemory)));
  uint64_t opened = getters_.open(std::move(request));
  if (ticket == 0) {
    begin(opened, now);
  } else {
    // A task that needs no room waits for nobody, except for earlier tasks of its process, which
    // may have to run first.
    const bool behind_others = arguments_.has_in_line(id);
    arguments_.join({opened, id, ticket, now.steady_us});
    if (behind_others || !admit(std::prev(arguments_.line().end()), false, now)) room_.note_freed();
  }
  serve_room_demands(now);
  if (ArgumentLine::Entry* entry = ticket == 0 ? nullptr : arguments_.in_line(id, ticket)) {
    entry->told = true;
    sink_.tell({Notice::kWaitsForRoom, id, ticket});
  }
}

void StoreCore::begin(uint64_t id, Now now) {
  Getters::Request* request = getters_.find(id);
  request->in_line = false;
  if (request->timeout_us >= 0)
    request->deadline_us = now.steady_us + std::min<int64_t>(request->timeout_us, int64_t{1} << 50);
  for (size_t i = 0; i < request->items.size(); i++) try_answer({id, i}, now);
  if (request->open == 0 || request->deadline_us <= now.steady_us) {
    complete(id);
  } else if (request->deadline_us != kNoDeadline) {
    getters_.set_timer(request->deadline_us, {id, Getters::kWhole});
  }
}

// Every caller's event ends with serve_room_demands(), which gives the fetch its room.
void StoreCore::start_fetch(const ObjectId& id, const std::vector<Source>& sources, bool first,
                            Now now) {
  fetching_.try_emplace(id, Fetching{now.steady_us});
  int64_t size = known_size(sources);
  // The fetcher asks for the room when it knows the size. A fetch that can never fit fails there,
  // too.
  if (size == 0 || size > allocator_.capacity()) return sink_.fetch(id, sources, first);
  Demand demand;
  demand.kind = Demand::Kind::kFetch;
  demand.client = kFetcher;
  demand.items.push_back({id, size, {}});
  demand.sources.push_back(sources);
  demand.bytes = room_of(size);
  demand.since_us = now.steady_us;
  demand.deadline_us = now.steady_us + options_.create_wait_us;
  demand.wait = true;
  demand.first = first;
  waiting_.push_back(std::move(demand));
  room_.note_freed();
}

void StoreCore::fail_fetch(const ObjectId& id, const Error& error, Now now) {
  if (auto fetch = fetching_.extract(id); !fetch.empty() && fetch.mapped().room.size > 0) {
    room_.release(fetch.mapped().room);
  }
  getters_.fail_fetch(id, error);
  try_answer_all(id, now);
}

bool StoreCore::admit(std::list<ArgumentLine::Entry>::iterator entry, bool may_take_room, Now now) {
  Getters::Request& request = *getters_.find(entry->request);
  const Client& client = clients_.at(request.client);
  Demand demand;
  demand.kind = Demand::Kind::kFetch;
  demand.client = kFetcher;
  demand.since_us = now.steady_us;
  demand.deadline_us = now.steady_us + options_.create_wait_us;
  demand.wait = true;
  // Copies that are here must not be evicted to make room for the rest.
  std::vector<Object*> kept;
  entry->bytes = 0;
  // Whether an object is already being fetched for somebody else without room of its own.
  bool others_wait = false;
  // Made when it is first needed.
  std::optional<std::unordered_set<ObjectId>> without_room;
  auto waits_for_room = [&](const ObjectId& id) {
    if (!without_room) {
      without_room.emplace();
      for (const Demand& waiting : waiting_) {
        if (waiting.kind != Demand::Kind::kFetch) continue;
        for (const CreateItem& item : waiting.items) without_room->insert(item.id);
      }
    }
    return without_room->contains(id);
  };
  std::unordered_set<ObjectId> seen;
  for (const Getters::Item& item : request.items) {
    if (client.pins.contains(item.id) || !seen.insert(item.id).second) continue;
    if (Object* object = objects_.find(item.id)) {
      if (object->evictable) entry->bytes += object->room.size;
      objects_.pin(object);
      kept.push_back(object);
      continue;
    }
    int64_t size = known_size(item.sources);
    if (size == 0 || objects_.is_being_created(item.id)) continue;
    if (fetching_.contains(item.id)) {
      if (waits_for_room(item.id)) {
        entry->bytes += room_of(size);
        others_wait = true;
      }
      continue;
    }
    demand.items.push_back({item.id, size, {}});
    demand.sources.push_back(item.sources);
    demand.bytes += room_of(size);
  }
  entry->bytes += demand.bytes;
  const bool admitted =
      !others_wait && (demand.items.empty() || (may_take_room && room_.place(demand)));
  if (admitted) {
    for (const CreateItem& item : demand.items)
      fetching_.try_emplace(item.id, Fetching{now.steady_us});
    if (!demand.items.empty()) reserving_.push_back(std::move(demand));
    uint64_t id = entry->request;
    if (entry->told) sink_.tell({Notice::kHasRoom, entry->client, entry->ticket});
    arguments_.admit(entry);
    begin(id, now);
  }
  for (Object* object : kept) RT_CHECK(!objects_.unpin(object));
  return admitted;
}

// Admits the tasks in line, in their order. Requests of tasks that run go first as long as room
// will come for them. When no room can be expected for the first in line, what fits behind it is
// admitted, because others may wait for its result; but nothing of the same process, which may
// have to run the first one before.
bool StoreCore::serve_line(Now now) {
  auto& line = arguments_.line();
  if (line.empty()) {
    arguments_.stuck_since_us = 0;
    return false;
  }
  const bool others_first = !waiting_.empty() && room_will_come(waiting_.front().bytes);
  std::unordered_set<ClientId> passed;
  for (auto entry = line.begin(); !others_first && entry != line.end();) {
    auto next = std::next(entry);
    if (!passed.contains(entry->client) && !admit(entry, true, now)) {
      if (room_will_come(entry->bytes)) break;
      passed.insert(entry->client);
    }
    entry = next;
  }
  bool failed = false;
  while (!line.empty() && !others_first && !room_will_come(line.front().bytes)) {
    int64_t& since = arguments_.stuck_since_us;
    if (since == 0) since = now.steady_us;
    if (std::max(since, line.front().joined_us) + options_.create_wait_us > now.steady_us)
      return failed;
    uint64_t request = line.front().request;
    GetAnswer answer;
    answer.error = full(line.front().bytes);
    answer.error.message =
        "there is no room for the arguments of the task: " + answer.error.message;
    arguments_.drop(line.begin());
    for (size_t i = 0; i < getters_.find(request)->items.size(); i++)
      getters_.answer({request, i}, answer);
    complete(request);
    failed = true;
  }
  arguments_.stuck_since_us = 0;
  return failed;
}

void StoreCore::update_tasks(ClientId id, const std::vector<Ticket>& ended,
                             std::optional<bool> blocked, Now now) {
  if (!clients_.active(id)) return;
  for (Ticket ticket : ended) {
    // Nobody reads the answer to a request that was given up.
    if (auto request = arguments_.leave(id, ticket)) complete(*request);
  }
  if (blocked) arguments_.set_blocked(id, *blocked);
  if (!waiting_.empty() || !arguments_.is_empty()) room_.note_freed();
  serve_room_demands(now);
}

bool StoreCore::room_will_come(int64_t bytes) const {
  bool somebody_runs = false;
  int64_t coming = allocator_.free_bytes() + objects_.evictable_bytes();
  std::unordered_set<const Object*> counted;
  arguments_.for_each_running([&](ClientId client) {
    somebody_runs = true;
    for (const auto& [id, pin] : clients_.at(client).pins) {
      if (pin.object->secondary && counted.insert(pin.object).second)
        coming += pin.object->room.size;
    }
  });
  if (!somebody_runs) return false;
  // The copies on their way to running tasks count, too.
  for (const auto& [id, fetch] : fetching_) coming += fetch.room.size;
  for (const auto& [id, object] : clients_.at(kFetcher).unsealed) coming += object->room.size;
  for (const Demand& demand : reserving_) {
    if (demand.client == kFetcher) coming += demand.bytes;
  }
  return coming >= bytes;
}

}  // namespace rt::store
