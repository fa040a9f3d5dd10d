// Extents are ranges leased to clients, which cut small objects from them without asking the
// daemon. The reports of clients about these objects are checked here. When a lease ends (the
// client says so, or dies), the extent dissolves: its objects keep their room as their own, and
// the rest returns to the arena.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "daemons/object_store/core/object_table.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class Extents {
 public:
  uint64_t lease(ClientId client, Range range);
  // Returns the room that an object described by `item` takes. Fails with kInvalid, naming the
  // rule that the client broke.
  Result<Range> check(ClientId client, const SealItem& item) const;
  void add(Object* object);
  void remove(Object* object);
  bool is_leased_to(uint64_t extent, ClientId client) const;
  // Ends a lease and returns the ranges that no object uses, which the caller must release.
  std::vector<Range> dissolve(uint64_t extent);

  int64_t leased_bytes() const { return leased_bytes_; }
  struct Extent {
    ClientId client = 0;
    Range range;
    std::map<int64_t, Object*> objects;  // By offset.
  };
  const std::unordered_map<uint64_t, Extent>& all() const { return extents_; }
  void check_invariants() const;

 private:
  std::unordered_map<uint64_t, Extent> extents_;
  uint64_t next_id_ = 1;
  int64_t leased_bytes_ = 0;
};

}  // namespace rt::store
