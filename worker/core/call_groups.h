// Which call of an actor with several calls at a time starts next. Each concurrency group runs at
// most its limit, in the order its calls came; calls of no group belong to the default one. Pure;
// the executor guards it with its own mutex.
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

  // Limits are at least 1; the default group is number 0.
  void configure(int default_limit, const std::map<std::string, int>& limits) {
    RT_CHECK(groups_.size() == 1 && groups_[0].waiting.empty());
    groups_[0].limit = std::max(1, default_limit);
    for (const auto& [name, limit] : limits) {
      numbers_[name] = static_cast<int>(groups_.size());
      groups_.emplace_back().limit = std::max(1, limit);
    }
  }

  // The group's number; -1 when there is none of that name. "" is the default group.
  int find(std::string_view name) const {
    if (name.empty()) return 0;
    auto it = numbers_.find(name);
    return it == numbers_.end() ? -1 : it->second;
  }

  void add(int group, Call call) {
    groups_[group].waiting.push_back({++arrivals_, std::move(call)});
  }

  int size() const { return static_cast<int>(groups_.size()); }
  std::vector<std::string> names() const {  // by number; "" is the default group's
    std::vector<std::string> names(groups_.size());
    for (const auto& [name, number] : numbers_) names[number] = name;
    return names;
  }

  // Of the groups with room, the call that came first. It counts as running until done().
  std::optional<Started> next() {
    int number = -1;
    for (int i = 0; i < static_cast<int>(groups_.size()); ++i) {
      if (groups_[i].startable() > 0 &&
          (number < 0 || groups_[i].waiting.front().first < groups_[number].waiting.front().first))
        number = i;
    }
    return number < 0 ? std::nullopt : next(number);
  }

  // Of this group.
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

  // How many calls next() would give now.
  size_t startable(int group) const { return groups_[group].startable(); }
  size_t startable() const {
    size_t count = 0;
    for (const Group& group : groups_) count += group.startable();
    return count;
  }

  // The most calls that can run at a time.
  int capacity() const {
    int64_t sum = 0;
    for (const Group& group : groups_) sum += group.limit;
    return static_cast<int>(std::min<int64_t>(sum, INT32_MAX));
  }

  // The calls that wait, for their destruction elsewhere.
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
    std::deque<std::pair<uint64_t, Call>> waiting;  // with the number of its arrival
    size_t startable() const {
      return std::min<size_t>(waiting.size(), static_cast<size_t>(limit - running));
    }
  };
  std::deque<Group> groups_ = std::deque<Group>(1);  // by number; made once
  std::map<std::string, int, std::less<>> numbers_;
  uint64_t arrivals_ = 0;
};

}  // namespace rt::worker
