#include "daemons/object_store/core/fetch_queue.h"

#include <algorithm>
#include <utility>

namespace rt::store {

FetchQueue::FetchQueue(int64_t capacity, int64_t max_bytes)
    : capacity_(capacity), max_bytes_(max_bytes) {}

FetchQueue::~FetchQueue() = default;

std::optional<FetchQueue::Launch> FetchQueue::take(
    const std::unordered_map<ObjectId, FetchId>& under_way) {
  for (auto* queue : {&first_, &others_}) {
    for (auto it = queue->begin(); it != queue->end(); ++it) {
      int64_t hint = 0;
      for (const Source& source : it->sources)
        hint = std::max(hint, std::min(source.size, capacity_));
      if (bytes_ > 0 && bytes_ + hint > max_bytes_) return std::nullopt;
      if (under_way.contains(it->object)) continue;
      Launch launch{std::move(*it), std::max<int64_t>(hint, 1)};
      queue->erase(it);
      bytes_ += launch.bytes;
      return launch;
    }
  }
  return std::nullopt;
}

}  // namespace rt::store
