#include "daemons/object_store/core/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/base/readable.h"
#include "common/base/remedies.h"

namespace rt::store {

std::string human(int64_t bytes) {
  if (bytes >= int64_t{10} << 30)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
  if (bytes >= 1 << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{} bytes", bytes);
}

std::string describe(const Holder& holder) {
  return fmt::format("{} {} in {} objects", process_name(holder.worker, holder.pid),
                     human(holder.bytes), holder.objects);
}

Error never_fits(int64_t wanted_bytes, int64_t capacity) {
  return make_error(
      Code::kObjectStoreFull,
      fmt::format("an object of {} can never fit: this node's object store holds {}. Split the "
                  "object, or {}",
                  human(wanted_bytes), human(capacity), kMoreStoreMemory));
}

Error too_many_waiting(size_t count, const char* awaited, size_t bound) {
  return make_error(
      Code::kResourceExhausted,
      fmt::format("{} requests already wait for {} in this node's object store. Make fewer of "
                  "them at a time, or raise the setting store_max_waiting (RAY_store_max_waiting, "
                  "now {})",
                  count, awaited, bound));
}

Error full_error(int64_t wanted_bytes, const Allocator& allocator, const Extents& extents,
                 const Pages& pages, const std::vector<Holder>& holders) {
  const int64_t free = allocator.free_bytes();
  std::string text =
      fmt::format("the object store of this node is full: {} wanted, {} of {} used",
                  human(wanted_bytes), human(allocator.limit() - free), human(allocator.limit()));
  if (pages.shortage()) text += fmt::format(" and {}", pages.shortage()->message);
  if (extents.leased_bytes() > 0)
    text += fmt::format(" ({} leased for small objects)", human(extents.leased_bytes()));
  if (const int64_t largest = allocator.largest_free();
      free >= wanted_bytes && largest < wanted_bytes) {
    text += fmt::format(
        "; {} are free, but in pieces of at most {} bytes, because objects are not moved",
        human(free), largest);
  }
  std::string who;
  for (size_t i = 0; i < holders.size() && i < 5; i++)
    who += (i ? ", " : "") + describe(holders[i]);
  if (!who.empty()) text += "; held by " + who;
  text += ". " + full_store_remedy(pages.shortage().has_value());
  return make_error(Code::kObjectStoreFull, std::move(text));
}

void WaiterTable::add(ClientId client, const WorkerId& worker, int pid, Waiter::Kind kind,
                      const ObjectId& first, int64_t bytes, int64_t since_us) {
  const JobId job = job_of(task_of(first));
  auto [it, is_new] = all_.try_emplace({client, kind, job});
  Waiter& waiter = it->second;
  if (is_new) waiter = {kind, worker, job, pid, 0, 0, since_us};
  ++waiter.count;
  waiter.bytes += bytes;
  waiter.since_us = std::min(waiter.since_us, since_us);
}

std::vector<Waiter> WaiterTable::sorted() const {
  std::vector<Waiter> waiters;
  for (const auto& [key, waiter] : all_) waiters.push_back(waiter);
  std::stable_sort(waiters.begin(), waiters.end(),
                   [](const Waiter& a, const Waiter& b) { return a.since_us < b.since_us; });
  return waiters;
}

}  // namespace rt::store
