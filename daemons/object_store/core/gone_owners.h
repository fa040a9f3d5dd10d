// Owners that have ended, workers and whole nodes, for a while and in bounded number. Their tasks
// end a moment after them, and what these seal until then would be freed by nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

#include "common/base/ids.h"

namespace rt::store {

class GoneOwners {
 public:
  explicit GoneOwners(size_t max_entries);
  ~GoneOwners();

  // Each is remembered until `until_us` at least, unless there are too many.
  void add(const WorkerId& owner, int64_t until_us);
  void add(const NodeId& node, int64_t until_us);
  // Forgets those that were to be remembered until `forget_us` or less.
  void forget(int64_t forget_us);
  bool contains(const WorkerId& owner) const {
    return workers_.contains(owner) || nodes_.contains(node_mark(owner));
  }

 private:
  struct Entry {
    int64_t until_us = 0;
    WorkerId worker;  // Nil if the entry is a node.
    uint64_t node = 0;
  };
  void add(const Entry& entry);
  void forget_first();

  const size_t max_entries_;
  std::deque<Entry> order_;
  std::unordered_set<WorkerId> workers_;
  std::unordered_set<uint64_t> nodes_;
};

}  // namespace rt::store
