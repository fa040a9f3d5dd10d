// What a batch of task events holds, counted: who filters or counts by anything but a task's id or
// its parent's need not read the batch itself, and who looks for one id only the batches that may
// have it.
//
// Packed, little-endian: u32 version (2; 1 is read as well), u32 string count, the strings; node
// ip, worker and node id as strings, u32 pid, u32 flags (2: C++); u32 group count, then each group
// (actor id, job id, u32 attempt, name, function, error, u8 kind, u32 events); version 2: then two
// lists of ranges, each u32 count and u64 first, last.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/events/task_events.h"

namespace rt {

struct TaskDigest {
  // Events that differ in their task and their times only. Spans are left out.
  struct Group {
    ActorId actor;  // nil: of no actor
    JobId job;
    uint32_t attempt = 0;
    uint32_t name = 0, function = 0,
             error = 0;  // indexes of strings; error: the type alone, 0 for none
    uint8_t kind = 0;    // TaskEvent::Kind
    uint32_t events = 0;
  };
  std::string node_ip, worker_hex, node_hex;
  uint32_t pid = 0;
  bool is_cpp = false;
  std::vector<std::string> strings;
  std::vector<Group> groups;

  // Of the leading numbers of ids, which an owner counts up; sorted. Empty: nothing is known.
  struct Range {
    uint64_t first, last;
  };
  std::vector<Range> tasks, parents;
  // False: no event of the batch is of this task, or a child of this one.
  bool may_have_task(const TaskId& id) const { return may_have(tasks, id); }
  bool may_have_child_of(const TaskId& id) const { return may_have(parents, id); }

 private:
  static bool may_have(const std::vector<Range>& ranges, const TaskId& id);
};

// Counts the events of one batch.
class TaskDigestWriter {
 public:
  // So many events of one owner (whose task this is) with these fields; spans are left out.
  void count(const TaskId& task, const TaskEventCommon& common, uint32_t events);
  // The leading numbers of their tasks.
  void add_tasks(std::span<const uint64_t> leads);
  // Empty where counting would save nothing: the groups are too many.
  std::string pack(const TaskEventSource& source, const std::vector<std::string>& strings) const;

 private:
  // Ranges of numbers that come nearly in order: what is near one extends it.
  class Ranges {
   public:
    void add(std::span<const uint64_t> numbers);
    // Of at most kMaxRanges; else none.
    std::vector<TaskDigest::Range> sorted() const;

   private:
    void add(TaskDigest::Range numbers);

    std::vector<TaskDigest::Range> ranges_;
    size_t last_ = 0;
    bool many_ = false;
  };

  std::vector<TaskDigest::Group> groups_;
  size_t last_ = 0;
  Ranges tasks_;
  std::vector<uint32_t> parents_;  // indexes of strings; neighbours differ
};

// Whether an event of this kind belongs to an actor's task.
bool is_actors(uint8_t kind);

std::string pack_task_digest(const TaskEventBatchData& batch);
// kInvalid for anything that is no digest.
Result<TaskDigest> unpack_task_digest(std::string_view packed);

}  // namespace rt
