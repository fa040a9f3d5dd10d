// Decides which call of an actor with several calls at a time starts next. Each concurrency group
// runs at most its limit of calls, in the order they came; calls that name no group belong to the
// default group. Pure: the executor guards it with its own mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace rt::worker {

template <class Call>
class CallGroups {
 public:
  struct Started {
    Call call;
    int group;
  };

  // Sets the limits of the default group (number 0) and of the named ones; a limit below 1 counts
  // as 1. To be called once, before the first add().
  void configure(int default_limit, const std::map<std::string, int>& limits) {
    RT_CHECK(groups_.size() == 1 && groups_[0].waiting.empty());
    groups_[0].limit = std::max(1, default_limit);
    for (const auto& [name, limit] : limits) {
      numbers_[name] = static_cast<int>(groups_.size());
      groups_.emplace_back().limit = std::max(1, limit);
    }
  }

  // The group's number; 0 for "", the default group, and -1 when no group has that name.
  int find(std::string_view name) const {
    if (name.empty()) return 0;
    auto it = numbers_.find(name);
    return it == numbers_.end() ? -1 : it->second;
  }

  void add(int group, Call call) {
    groups_[group].waiting.push_back({++arrivals_, std::move(call)});
  }

  int size() const { return static_cast<int>(groups_.size()); }
  // Group names by number; that of the default group is "".
  std::vector<std::string> names() const {
    std::vector<std::string> names(groups_.size());
    for (const auto& [name, number] : numbers_) names[number] = name;
    return names;
  }

  // Takes the oldest waiting call of all groups that have room. It counts as running until done().
  std::optional<Started> next() {
    int number = -1;
    for (int i = 0; i < static_cast<int>(groups_.size()); ++i) {
      if (groups_[i].startable() > 0 &&
          (number < 0 || groups_[i].waiting.front().first < groups_[number].waiting.front().first))
        number = i;
    }
    return number < 0 ? std::nullopt : next(number);
  }

  // Takes the oldest waiting call of this group, if the group has room.
  std::optional<Started> next(int number) {
    Group& group = groups_[number];
    if (group.startable() == 0) return std::nullopt;
    std::optional<Started> started(Started{std::move(group.waiting.front().second), number});
    group.waiting.pop_front();
    ++group.running;
    return started;
  }

  void done(int group) {
    RT_CHECK(groups_[group].running > 0);
    --groups_[group].running;
  }

  // The number of calls that next() would give now.
  size_t startable(int group) const { return groups_[group].startable(); }
  size_t startable() const {
    size_t count = 0;
    for (const Group& group : groups_) count += group.startable();
    return count;
  }

  // The most calls that can run at the same time.
  int capacity() const {
    int64_t sum = 0;
    for (const Group& group : groups_) sum += group.limit;
    return static_cast<int>(std::min<int64_t>(sum, INT32_MAX));
  }

  // Takes out all waiting calls, so that the caller can destroy them without its mutex.
  std::vector<Call> take_waiting() {
    std::vector<Call> taken;
    for (Group& group : groups_) {
      for (auto& [arrival, call] : group.waiting) taken.push_back(std::move(call));
      group.waiting.clear();
    }
    return taken;
  }

  void check_invariants() const {
    for (const Group& group : groups_)
      RT_CHECK(group.limit >= 1 && group.running >= 0 && group.running <= group.limit);
  }

 private:
  struct Group {
    int limit = 1;
    int running = 0;
    std::deque<std::pair<uint64_t, Call>> waiting;  // Each with its arrival number.
    size_t startable() const {
      return std::min<size_t>(waiting.size(), static_cast<size_t>(limit - running));
    }
  };
  std::deque<Group> groups_ = std::deque<Group>(1);  // By number; fixed after configure().
  std::map<std::string, int, std::less<>> numbers_;
  uint64_t arrivals_ = 0;
};

}  // namespace rt::worker
