#include "daemons/object_store/core/extents.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::store {

uint64_t Extents::lease(ClientId client, Range range) {
  uint64_t id = next_id_++;
  extents_.emplace(id, Extent{client, range, {}});
  leased_bytes_ += range.size;
  return id;
}

bool Extents::is_leased_to(uint64_t extent, ClientId client) const {
  auto it = extents_.find(extent);
  return it != extents_.end() && it->second.client == client;
}

Result<Range> Extents::check(ClientId client, const SealItem& item) const {
  if (!is_leased_to(item.extent, client))
    return make_error(
        Code::kInvalid,
        fmt::format("sealed object {} in extent {}, which is not leased to this client",
                    item.id.hex(), item.extent));
  const Extent& extent = extents_.at(item.extent);
  if (item.size < 0 || item.size > extent.range.size || item.offset % kUnit != 0 ||
      item.offset < extent.range.offset || item.offset > extent.range.end()) {
    return make_error(Code::kInvalid, fmt::format("sealed object {} at {}+{}, outside its extent",
                                                  item.id.hex(), item.offset, item.size));
  }
  Range room{item.offset, round_up(std::max<int64_t>(item.size, 1), kUnit)};
  if (room.end() > extent.range.end())
    return make_error(Code::kInvalid,
                      fmt::format("sealed object {} at {}+{}, beyond the end of its extent",
                                  item.id.hex(), item.offset, item.size));
  auto next = extent.objects.lower_bound(room.offset);
  bool overlaps = next != extent.objects.end() && next->first < room.end();
  if (next != extent.objects.begin() && std::prev(next)->second->room.end() > room.offset)
    overlaps = true;
  if (overlaps)
    return make_error(
        Code::kInvalid,
        fmt::format("sealed object {} where it overlaps another object", item.id.hex()));
  return room;
}

void Extents::add(Object* object) {
  RT_CHECK(extents_.at(object->extent).objects.emplace(object->room.offset, object).second);
}

void Extents::remove(Object* object) {
  RT_CHECK(extents_.at(object->extent).objects.erase(object->room.offset) == 1);
}

std::vector<Range> Extents::dissolve(uint64_t id) {
  auto node = extents_.extract(id);
  RT_CHECK(!node.empty());
  Extent& extent = node.mapped();
  std::vector<Range> gaps;
  int64_t at = extent.range.offset;
  for (auto& [offset, object] : extent.objects) {
    if (offset > at) gaps.push_back({at, offset - at});
    at = object->room.end();
    object->extent = 0;
  }
  if (at < extent.range.end()) gaps.push_back({at, extent.range.end() - at});
  leased_bytes_ -= extent.range.size;
  return gaps;
}

void Extents::check_invariants() const {
  int64_t bytes = 0;
  for (auto& [id, extent] : extents_) {
    bytes += extent.range.size;
    int64_t at = extent.range.offset;
    for (auto& [offset, object] : extent.objects) {
      RT_CHECK(object->extent == id && object->room.offset == offset && offset >= at);
      at = object->room.end();
    }
    RT_CHECK(at <= extent.range.end());
  }
  RT_CHECK(bytes == leased_bytes_);
}

}  // namespace rt::store
