#include "daemons/object_store/core/allocator.h"

#include <algorithm>

namespace rt::store {

Allocator::Allocator(int64_t capacity) : capacity_(capacity), limit_(capacity) {
  RT_CHECK(capacity > 0 && capacity % kUnit == 0);
  insert(0, capacity);
}

std::optional<int64_t> Allocator::allocate(int64_t size) {
  RT_CHECK(size > 0 && size % kUnit == 0);
  auto chosen = by_size_.end();
  for (auto it = by_size_.lower_bound({size, 0}); it != by_size_.end(); ++it) {
    if (it->second + size > limit_) continue;
    bool tail = it->second + it->first == capacity_;
    if (!tail) {
      chosen = it;
      break;
    }
    // The tail is used only if nothing else fits.
    chosen = it;
  }
  if (chosen == by_size_.end()) return std::nullopt;
  auto [range_size, offset] = *chosen;
  remove(free_.find(offset));
  if (range_size > size) insert(offset + size, range_size - size);
  return offset;
}

void Allocator::release(Range range) {
  if (range.size == 0) return;
  RT_CHECK(range.offset >= 0 && range.size > 0 && range.end() <= capacity_);
  auto next = free_.lower_bound(range.offset);
  RT_CHECK(next == free_.end() || range.end() <= next->first);
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    RT_CHECK(previous->first + previous->second <= range.offset);
    if (previous->first + previous->second == range.offset) {
      range = {previous->first, previous->second + range.size};
      remove(previous);
    }
  }
  if (next != free_.end() && next->first == range.end()) {
    range.size += next->second;
    remove(next);
  }
  insert(range.offset, range.size);
}

void Allocator::set_limit(int64_t limit) { limit_ = std::clamp<int64_t>(limit, 0, capacity_); }

int64_t Allocator::usable(int64_t offset, int64_t size) const {
  return std::max<int64_t>(0, std::min(offset + size, limit_) - offset);
}

int64_t Allocator::free_bytes() const {
  int64_t bytes = free_bytes_;
  for (auto it = free_.rbegin(); it != free_.rend() && it->first + it->second > limit_; ++it)
    bytes -= it->second - usable(it->first, it->second);
  return bytes;
}

int64_t Allocator::largest_free() const {
  int64_t largest = 0;
  for (auto it = by_size_.rbegin(); it != by_size_.rend() && it->first > largest; ++it)
    largest = std::max(largest, usable(it->second, it->first));
  return largest;
}

void Allocator::insert(int64_t offset, int64_t size) {
  free_.emplace(offset, size);
  by_size_.emplace(size, offset);
  free_bytes_ += size;
}

void Allocator::remove(std::map<int64_t, int64_t>::iterator it) {
  by_size_.erase({it->second, it->first});
  free_bytes_ -= it->second;
  free_.erase(it);
}

void Allocator::check_invariants() const {
  RT_CHECK(free_.size() == by_size_.size());
  int64_t bytes = 0, previous_end = -1;
  for (auto [offset, size] : free_) {
    // The offset is strictly greater, because neighbours are coalesced.
    RT_CHECK(size > 0 && offset > previous_end);
    RT_CHECK(by_size_.count({size, offset}) == 1);
    previous_end = offset + size;
    bytes += size;
  }
  RT_CHECK(previous_end <= capacity_);
  RT_CHECK(bytes == free_bytes_);
}

}  // namespace rt::store
