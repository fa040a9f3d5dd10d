// StoreCore in words and figures for people: why a request was refused, and who holds the room.
#include <fmt/core.h>

#include <utility>

#include "daemons/object_store/core/store_core.h"

namespace rt::store {

namespace {

std::string human(int64_t bytes) {
  if (bytes >= int64_t{10} << 30)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
  if (bytes >= 1 << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{} bytes", bytes);
}

std::string describe(const Holder& holder) {
  const JobId job = job_of_driver(holder.worker);
  return fmt::format("{}{} {} in {} objects",
                     job.is_nil() ? "worker " + holder.worker.hex().substr(0, 16)
                                  : "the driver of job " + job.hex(),
                     holder.pid > 0 ? fmt::format(" (pid {})", holder.pid) : "",
                     human(holder.bytes), holder.objects);
}

}  // namespace

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
  text +=
      ". Drop references that are no longer needed, or give the store more memory "
      "(--object-store-memory)";
  return make_error(Code::kObjectStoreFull, std::move(text));
}

Error StoreCore::never_fits(int64_t wanted_bytes) const {
  return make_error(
      Code::kObjectStoreFull,
      fmt::format("an object of {} can never fit: this node's object store holds {}. Give it more "
                  "(--object-store-memory) or split the object",
                  human(wanted_bytes), human(allocator_.capacity())));
}

Error StoreCore::too_many_waiting(size_t count, const char* awaited) const {
  return make_error(
      Code::kResourceExhausted,
      fmt::format("{0} requests already wait for {1} in this node's object store. Make fewer of "
                  "them at a time, or raise the setting store_max_waiting (RAY_store_max_waiting, "
                  "now {2})",
                  count, awaited, options_.max_waiting));
}

Stats StoreCore::stats(bool brief) const {
  Stats stats;
  stats.capacity = allocator_.capacity();
  stats.used = objects_.used_bytes();
  if (brief) return stats;
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
