// The allocator of ranges in the store's arena.
#include "daemons/object_store/core/allocator.h"

#include <gtest/gtest.h>

#include <map>

#include "common/base/rng.h"

namespace rt::store {
namespace {

TEST(Allocator, ReusesWhatWasFreedBeforeUntouchedMemory) {
  Allocator allocator(1 << 20);
  int64_t a = *allocator.allocate(64 * 1024);
  int64_t b = *allocator.allocate(64 * 1024);
  int64_t c = *allocator.allocate(64 * 1024);
  EXPECT_EQ(a, 0);
  EXPECT_LT(b, c);
  allocator.release({b, 64 * 1024});
  EXPECT_EQ(allocator.allocate(64 * 1024), b);
  allocator.release({b, 64 * 1024});
  allocator.release({c, 64 * 1024});
  allocator.release({a, 64 * 1024});
  EXPECT_EQ(allocator.largest_free(), 1 << 20);  // Coalesced with both neighbours.
  allocator.check_invariants();
}

TEST(Allocator, TakesTheSmallestHoleThatFits) {
  Allocator allocator(1 << 20);
  int64_t big = *allocator.allocate(8192), fence = *allocator.allocate(64),
          small = *allocator.allocate(4096);
  ASSERT_TRUE(allocator.allocate(64));
  allocator.release({big, 8192});
  allocator.release({small, 4096});
  EXPECT_EQ(allocator.allocate(4096), small);
  EXPECT_EQ(allocator.allocate(4096), big);
  EXPECT_GT(fence, big);
}

TEST(Allocator, HandsOutNothingBeyondItsLimit) {
  Allocator allocator(1 << 20);
  allocator.set_limit(4096);
  EXPECT_FALSE(allocator.allocate(8192));
  EXPECT_EQ(allocator.free_bytes(), 4096);
  EXPECT_EQ(allocator.allocate(4096), 0);
  EXPECT_FALSE(allocator.allocate(64));
  allocator.set_limit(1 << 20);
  EXPECT_EQ(allocator.allocate(64), 4096);
}

// Checks the allocator against a model: ranges never overlap, no byte is lost, and freeing
// everything leaves one range. Parts of a range may be freed on their own.
TEST(Allocator, RandomAllocationsAndReleases) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    constexpr int64_t kCapacity = 1 << 20;
    Allocator allocator(kCapacity);
    std::map<int64_t, int64_t> used;
    int64_t used_bytes = 0;
    for (int step = 0; step < 3000; step++) {
      if (used.empty() || rng.chance(0.55)) {
        int64_t size = static_cast<int64_t>(1 + rng.below(rng.chance(0.1) ? 2000 : 100)) * kUnit;
        auto offset = allocator.allocate(size);
        if (!offset) {
          ASSERT_LT(allocator.largest_free(), size);
          continue;
        }
        auto next = used.lower_bound(*offset);
        ASSERT_TRUE(next == used.end() || *offset + size <= next->first);
        ASSERT_TRUE(next == used.begin() ||
                    std::prev(next)->first + std::prev(next)->second <= *offset);
        ASSERT_LE(*offset + size, kCapacity);
        used[*offset] = size;
        used_bytes += size;
      } else {
        auto it = std::next(used.begin(), static_cast<int64_t>(rng.below(used.size())));
        auto [offset, size] = *it;
        used.erase(it);
        int64_t part =
            rng.chance(0.3)
                ? static_cast<int64_t>(rng.below(static_cast<uint64_t>(size / kUnit))) * kUnit
                : 0;
        if (part > 0) used[offset] = part;
        allocator.release({offset + part, size - part});
        used_bytes -= size - part;
      }
      ASSERT_EQ(allocator.free_bytes(), kCapacity - used_bytes);
      allocator.check_invariants();
    }
    for (auto [offset, size] : used) allocator.release({offset, size});
    ASSERT_EQ(allocator.largest_free(), kCapacity);
    ASSERT_EQ(allocator.free_ranges().size(), 1u);
  }
}

}  // namespace
}  // namespace rt::store
