#include "daemons/object_store/core/early_frees.h"

#include <iterator>

namespace rt::store {

EarlyFrees::EarlyFrees(size_t max_entries) : max_entries_(max_entries) {}

EarlyFrees::~EarlyFrees() = default;

void EarlyFrees::add(const ObjectId& id, int64_t until_us) {
  if (object_at_.count(id) || objects_.size() >= max_entries_) return;
  objects_.emplace_back(until_us, id);
  object_at_[id] = std::prev(objects_.end());
}

bool EarlyFrees::take(const ObjectId& id, Now now) {
  while (!objects_.empty() && objects_.front().first <= now.steady_us) {
    object_at_.erase(objects_.front().second);
    objects_.pop_front();
  }
  auto it = object_at_.find(id);
  if (it == object_at_.end()) return false;
  objects_.erase(it->second);
  object_at_.erase(it);
  return true;
}

}  // namespace rt::store
