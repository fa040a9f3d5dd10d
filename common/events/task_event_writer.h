// Records the events of one process: packed as they come, so that what waits for its way to the
// head is some bits each.
//
// Adding is part of every task's time: it costs some nanoseconds, and touches nine kilobytes over
// and over. Not thread safe.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/events/bits.h"
#include "common/events/task_digest.h"
#include "common/events/task_events.h"

namespace rt {

// The columns of a block, in their order.
enum ColumnOf : size_t {
  kOwnerColumn,
  kLeadColumn,
  kCommonColumn,
  kStartColumn,
  kCreatedColumn,
  kDeserializeColumn,
  kExecuteColumn,
  kStoreColumn,
  kColumns
};

class TaskEventWriter {
 public:
  TaskEventWriter() { clear(); }
  // With strings of the caller's own: [0] is "".
  explicit TaskEventWriter(std::vector<std::string> strings) : TaskEventWriter() {
    strings_ = std::move(strings);
  }

  // The index of a string in the batch that is being filled; 0 for "".
  uint32_t string(const std::string& text);
  void add(const TaskEvent& event) { add(event.task, event, event); }
  void add(const TaskId& task, const TaskEventCommon& common, const TaskEventTimes& times);
  // With what was common to the event before; there has to be one in this batch.
  void add(const TaskId& task, const TaskEventTimes& times) { add(task, common_, times); }

  size_t size() const { return size_; }
  size_t string_bytes() const {
    return string_bytes_;
  }  // of the strings that were added to this batch: tracebacks can be long
  uint64_t batch() const {
    return batch_;
  }  // the number of this batch, from 1: with another one, indexes of strings are others
  const TaskId& first_task() const { return owners_.front(); }
  int64_t min_time_us() const { return min_us_; }
  int64_t max_time_us() const { return max_us_; }

  // The batch, and its digest: empty where counting would save nothing.
  std::string events(const TaskEventSource& source);
  std::string digest(const TaskEventSource& source);
  // Begins the next one.
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
  void set(ColumnOf column, uint64_t number) { block_[column][in_block_] = number; }
  std::string head_of(const TaskEventSource& source) const;

  // The batch. Numbers of owners and commons are in the order of first sight.
  std::vector<std::string> strings_;
  std::unordered_map<std::string, uint32_t> string_numbers_;
  std::vector<TaskId> owners_;   // the first task of each
  std::vector<uint64_t> leads_;  // the last one of each owner
  std::unordered_map<TaskId, uint32_t, TailHash, SameTail> owner_numbers_;
  std::vector<TaskEventCommon> commons_;
  std::unordered_map<TaskEventCommon, uint32_t, CommonHash> common_numbers_;
  std::string columns_;  // of the blocks that are full
  size_t size_ = 0, string_bytes_ = 0;
  int64_t first_start_us_ = 0, first_created_us_ = 0, min_us_ = 0, max_us_ = 0;
  TaskDigestWriter digest_;
  uint64_t batch_ = 0;

  // The event before.
  uint32_t owner_ = 0, common_ = 0;
  int64_t start_us_ = 0, created_us_ = 0;
  uint32_t run_ = 0;  // of events with its owner and common

  size_t in_block_ = 0;
  std::array<std::array<uint64_t, events::kBlock>, kColumns> block_;
  std::array<uint64_t, events::kBlock> block_leads_;  // themselves
};

}  // namespace rt
