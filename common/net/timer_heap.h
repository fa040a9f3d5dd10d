// Private to common/net: the timers of one loop. A binary heap of deadlines over reused slots, so
// that thousands of call timeouts, nearly all of them cancelled, cost no allocation and no system
// call each.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace rt::net {

class TimerHeap {
 public:
  using Id = uint64_t;
  using Task = std::function<void()>;
  static constexpr int64_t kNever = INT64_MAX;

  // Ids are never 0.
  Id add(int64_t deadline_us, Task task);
  // Does nothing for a timer that has run or was cancelled.
  void cancel(Id id);
  int64_t next_deadline_us() const { return heap_.empty() ? kNever : heap_.front().deadline_us; }
  // Runs the timers due at `now_us`, by deadline, then in the order they were added. Tasks may add
  // and cancel timers; those they add run at the next call at the earliest.
  void fire_due(int64_t now_us);
  void clear();

 private:
  struct Slot {
    uint32_t generation = 1;
    Task task;
  };
  struct Entry {
    int64_t deadline_us;
    uint64_t sequence;
    Id id;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.deadline_us != b.deadline_us ? a.deadline_us > b.deadline_us : a.sequence > b.sequence;
  }
  bool is_live(Id id) const {
    return slots_[static_cast<uint32_t>(id)].generation == static_cast<uint32_t>(id >> 32);
  }
  Task take(Id id);
  void drop_cancelled();

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<Entry> heap_;  // May hold cancelled timers, but never at the front.
  size_t live_ = 0;
  uint64_t next_sequence_ = 0;
};

}  // namespace rt::net
