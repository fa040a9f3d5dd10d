// Records the task events of one process. Events are packed as they are added, so that each takes a
// few bits while it waits to be sent to the head.
//
// Adding an event is part of the time of every task: it costs some nanoseconds and always touches
// the same nine kilobytes. Not thread-safe.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observability/events/event_columns.h"
#include "observability/events/string_table.h"
#include "observability/events/task_digest.h"
#include "observability/events/task_events.h"

namespace rt {

class TaskEventWriter {
 public:
  TaskEventWriter();
  // Begins with the caller's strings, of which [0] must be "".
  explicit TaskEventWriter(std::vector<std::string> strings);

  // The index of a string in the current batch; 0 for "". Indexes are valid until clear().
  uint32_t string(const std::string& text) { return strings_.number(text); }
  void add(const TaskEvent& event) { add(event.task, event, event); }
  void add(const TaskId& task, const TaskEventCommon& common, const TaskEventTimes& times);
  // Adds an event with the common fields of the previous event of this batch; there must be one.
  void add(const TaskId& task, const TaskEventTimes& times) { add(task, common_, times); }

  size_t size() const { return size_; }  // number of events in the batch
  // Size of the strings in the batch, which can be large because of tracebacks.
  size_t string_bytes() const { return strings_.bytes(); }
  // The number of the batch, from 1. When it changes, indexes of strings are no longer valid.
  uint64_t batch() const { return batch_; }
  const TaskId& first_task() const { return owners_.front(); }
  int64_t min_time_us() const { return min_us_; }
  int64_t max_time_us() const { return max_us_; }

  // The packed batch, and its packed digest, which is empty if it would save nothing. No event may
  // be added between the two calls, nor afterwards before clear().
  std::string events(const TaskEventSource& source);
  std::string digest(const TaskEventSource& source);
  // Begins the next batch.
  void clear();

 private:
  struct TailHash {
    size_t operator()(const TaskId& id) const;
  };
  struct SameTail {
    bool operator()(const TaskId& a, const TaskId& b) const { return same_tail(a, b); }
  };
  struct CommonHash {
    size_t operator()(const TaskEventCommon& common) const;
  };

  uint32_t owner_of(const TaskId& task);
  uint32_t common_number(const TaskEventCommon& common);
  void add(const TaskId& task, uint32_t common, const TaskEventTimes& times);
  void count_run();
  void end_block();
  std::string head_of(const TaskEventSource& source) const;

  // The batch. Owners and commons are numbered in the order of their first event.
  events::StringTable strings_;
  std::vector<TaskId> owners_;   // the first task of each owner
  std::vector<uint64_t> leads_;  // the latest leading number of each owner
  std::unordered_map<TaskId, uint32_t, TailHash, SameTail> owner_numbers_;
  std::vector<TaskEventCommon> commons_;
  std::unordered_map<TaskEventCommon, uint32_t, CommonHash> common_numbers_;
  size_t size_ = 0;
  int64_t first_start_us_ = 0, first_created_us_ = 0, min_us_ = 0, max_us_ = 0;
  TaskDigestWriter digest_;
  uint64_t batch_ = 0;

  // The previous event.
  uint32_t owner_ = 0, common_ = 0;
  int64_t start_us_ = 0, created_us_ = 0;
  uint32_t run_ = 0;  // number of latest events with this owner and common, not yet in the digest

  // The last member, because it is large.
  events::EventColumns columns_;
};

}  // namespace rt
