#include "common/net/timer_heap.h"

#include <algorithm>
#include <utility>

namespace rt::net {

TimerHeap::Id TimerHeap::add(int64_t deadline_us, Task task) {
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot].task = std::move(task);
  Id id = (Id{slots_[slot].generation} << 32) | slot;
  heap_.push_back({deadline_us, next_sequence_++, id});
  std::push_heap(heap_.begin(), heap_.end(), later);
  ++live_;
  return id;
}

TimerHeap::Task TimerHeap::take(Id id) {
  Slot& slot = slots_[static_cast<uint32_t>(id)];
  Task task = std::move(slot.task);
  slot.task = nullptr;
  if (++slot.generation == 0) slot.generation = 1;
  free_.push_back(static_cast<uint32_t>(id));
  --live_;
  return task;
}

void TimerHeap::cancel(Id id) {
  if (static_cast<uint32_t>(id) >= slots_.size() || !is_live(id)) return;
  Task dropped = take(id);  // Destroyed last, since its destruction may cancel other timers.
  drop_cancelled();
}

void TimerHeap::drop_cancelled() {
  if (heap_.size() > 64 && heap_.size() > 2 * live_) {
    std::erase_if(heap_, [this](const Entry& e) { return !is_live(e.id); });
    std::make_heap(heap_.begin(), heap_.end(), later);
  }
  while (!heap_.empty() && !is_live(heap_.front().id)) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
  }
}

void TimerHeap::fire_due(int64_t now_us) {
  uint64_t end = next_sequence_;  // Timers that tasks add run in the next turn.
  std::vector<Entry> postponed;
  while (!heap_.empty() && heap_.front().deadline_us <= now_us) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = heap_.back();
    heap_.pop_back();
    if (!is_live(entry.id)) continue;
    if (entry.sequence >= end) {
      postponed.push_back(entry);
      continue;
    }
    Task task = take(entry.id);
    task();
  }
  for (const Entry& entry : postponed) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  drop_cancelled();
}

void TimerHeap::clear() {
  std::vector<Slot> dropped = std::move(slots_);
  slots_.clear();
  free_.clear();
  heap_.clear();
  live_ = 0;
}

}  // namespace rt::net
