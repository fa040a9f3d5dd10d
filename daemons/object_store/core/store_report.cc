// StoreCore: why a request was refused, who holds the room, and who waits for it.
#include <fmt/core.h>

#include <set>
#include <utility>

#include "common/base/remedies.h"
#include "daemons/object_store/core/report.h"
#include "daemons/object_store/core/store_core.h"

namespace rt::store {

Error StoreCore::full_error(int64_t wanted_bytes) const {
  const int64_t free = allocator_.free_bytes();
  std::string text =
      fmt::format("the object store of this node is full: {} wanted, {} of {} used",
                  human(wanted_bytes), human(allocator_.limit() - free), human(allocator_.limit()));
  if (no_pages_) text += fmt::format(" and {}", no_pages_->message);
  if (extents_.leased_bytes() > 0)
    text += fmt::format(" ({} leased for small objects)", human(extents_.leased_bytes()));
  if (const int64_t largest = allocator_.largest_free();
      free >= wanted_bytes && largest < wanted_bytes) {
    text += fmt::format(
        "; {} are free, but in pieces of at most {} bytes, because objects are not moved",
        human(free), largest);
  }
  std::string who;
  auto sorted = stats().holders;
  for (size_t i = 0; i < sorted.size() && i < 5; i++) who += (i ? ", " : "") + describe(sorted[i]);
  if (!who.empty()) text += "; held by " + who;
  text += ". " + full_store_remedy(no_pages_.has_value());
  return make_error(Code::kObjectStoreFull, std::move(text));
}

Stats StoreCore::stats(bool brief) const {
  Stats stats;
  stats.capacity = allocator_.capacity();
  stats.used = objects_.used_bytes();
  if (no_pages_) stats.no_pages = no_pages_->message;
  if (brief) {
    WaiterTable waiters;
    auto add = [&](ClientId id, Waiter::Kind kind, const ObjectId& first, int64_t bytes,
                   int64_t since_us) {
      if (id < kFirstClient) return;
      const Client& client = clients_.at(id);
      waiters.add(id, client.worker, client.pid, kind, first, bytes, since_us);
    };
    for (const Demand& demand : waiting_) {
      const ObjectId& first = demand.items[0].id;
      add(demand.client, Waiter::Kind::kValues, first, demand.bytes, demand.since_us);
      if (demand.client != kFetcher) continue;
      // A copy is fetched for those who wait for the object.
      std::set<ClientId> getters;
      for (const Getters::Place& place : getters_.waiting_for(first))
        getters.insert(getters_.find(place.request)->client);
      for (ClientId getter : getters)
        add(getter, Waiter::Kind::kCopies, first, demand.bytes, demand.since_us);
    }
    for (const ArgumentLine::Entry& entry : arguments_.line())
      add(entry.client, Waiter::Kind::kArguments, getters_.find(entry.request)->items[0].id,
          entry.bytes, entry.joined_us);
    stats.waiters = waiters.sorted();
    return stats;
  }
  for (auto [offset, size] : allocator_.free_ranges()) stats.allocated -= size;
  stats.allocated += stats.capacity;
  stats.objects = static_cast<int64_t>(objects_.size());
  for (const Object& object : objects_.all()) {
    if (object.pins > 0) stats.pinned += object.size;
  }
  stats.holders = objects_.holders();
  std::unordered_map<WorkerId, int> pids;
  for (auto& [id, client] : clients_) {
    if (client.pid > 0) pids[client.worker] = client.pid;
  }
  for (Holder& holder : stats.holders) {
    auto pid = pids.find(holder.worker);
    if (pid != pids.end()) holder.pid = pid->second;
  }
  return stats;
}

}  // namespace rt::store
