// Fetches that wait because the bytes of those under way are bounded. Fetches for which running
// tasks wait come before all others.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "daemons/object_store/core/fetch_sink.h"

namespace rt::store {

struct FetchOrder {
  ObjectId object;
  std::vector<Source> sources;
  bool first = false;  // Set when a running task waits for the object.
};

class FetchQueue {
 public:
  FetchQueue(int64_t capacity, int64_t max_bytes);
  ~FetchQueue();

  // The length of the queue is bounded by the number of clients that wait in StoreCore.
  void add(FetchOrder order) { (order.first ? first_ : others_).push_back(std::move(order)); }
  struct Launch {
    FetchOrder order;
    int64_t bytes = 0;  // The bytes that count towards the bound until ended().
  };
  // Takes the next fetch that the bound allows; one fetch is always allowed. An object that is in
  // `under_way` is passed over: the memory of its earlier fetch is still in use.
  std::optional<Launch> take(const std::unordered_map<ObjectId, FetchId>& under_way);
  void ended(int64_t bytes) { bytes_ -= bytes; }

  bool is_empty() const { return first_.empty() && others_.empty(); }
  int64_t bytes() const { return bytes_; }

 private:
  const int64_t capacity_, max_bytes_;
  std::list<FetchOrder> first_, others_;
  int64_t bytes_ = 0;
};

}  // namespace rt::store
