// The values that were added last: beyond a number, the oldest are forgotten.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>

namespace rt {

template <class T>
class RecentSet {
 public:
  explicit RecentSet(size_t most) : most_(most) {}

  // Returns false if the value is there already; its age stays what it was.
  bool add(const T& value) {
    if (!values_.insert(value).second) return false;
    order_.push_back(value);
    if (order_.size() > most_) {
      values_.erase(order_.front());
      order_.pop_front();
    }
    return true;
  }
  bool contains(const T& value) const { return values_.contains(value); }

 private:
  const size_t most_;
  std::unordered_set<T> values_;
  std::deque<T> order_;  // The oldest comes first.
};

}  // namespace rt
