// Cuts the arena into ranges: best fit, coalesced on release. The allocator prefers ranges that
// were in use before over the untouched tail, and the lower of two equal ones, so that freed
// (warm) memory is used again first and the arena stays compact. Pure bookkeeping: it never
// touches the memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "daemons/object_store/core/types.h"

namespace rt::store {

class Allocator {
 public:
  explicit Allocator(int64_t capacity);

  // `size` is a positive multiple of kUnit. Returns nothing if no free range below the limit is
  // large enough.
  std::optional<int64_t> allocate(int64_t size);
  // Gives back an allocated range, or any part of one.
  void release(Range range);

  // Forbids allocations at or above `limit`, because the file system has no pages left for them.
  void set_limit(int64_t limit);
  int64_t limit() const { return limit_; }
  int64_t capacity() const { return capacity_; }
  int64_t free_bytes() const;    // Only ranges below the limit count.
  int64_t largest_free() const;  // Only ranges below the limit count.
  const std::map<int64_t, int64_t>& free_ranges() const { return free_; }
  void check_invariants() const;

 private:
  void insert(int64_t offset, int64_t size);
  void remove(std::map<int64_t, int64_t>::iterator it);
  int64_t usable(int64_t offset, int64_t size) const;

  const int64_t capacity_;
  int64_t limit_;
  int64_t free_bytes_ = 0;
  std::map<int64_t, int64_t> free_;                // Maps an offset to a size.
  std::set<std::pair<int64_t, int64_t>> by_size_;  // Pairs of (size, offset).
};

}  // namespace rt::store
