// The part of StoreCore that tells who holds the room and who waits for it.
#include <set>
#include <utility>

#include "daemons/object_store/core/report.h"
#include "daemons/object_store/core/store_core.h"

namespace rt::store {

Stats StoreCore::stats(bool waiters_only) const {
  Stats stats;
  stats.capacity = allocator_.capacity();
  stats.used = objects_.used_bytes();
  if (pages_.shortage()) stats.no_pages = pages_.shortage()->message;
  if (waiters_only) {
    WaiterTable waiters;
    auto add = [&](ClientId id, Waiter::Kind kind, const ObjectId& first, int64_t bytes,
                   int64_t since_us) {
      if (id < kFirstClient) return;  // The parts of the store itself are not shown as waiters.
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
  stats.allocated = stats.capacity;
  for (auto [offset, size] : allocator_.free_ranges()) stats.allocated -= size;
  stats.objects = static_cast<int64_t>(objects_.size());
  for (const Object& object : objects_.all()) {
    if (object.pins > 0) stats.pinned += object.size;
  }
  stats.holders = objects_.holders();
  std::unordered_map<WorkerId, int> pids;
  for (auto& [id, client] : clients_.all()) {
    if (client.pid > 0) pids[client.worker] = client.pid;
  }
  for (Holder& holder : stats.holders) {
    auto pid = pids.find(holder.worker);
    if (pid != pids.end()) holder.pid = pid->second;
  }
  return stats;
}

}  // namespace rt::store
