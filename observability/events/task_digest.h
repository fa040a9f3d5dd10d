// The digest of a batch of task events: its events, counted in groups. A reader that counts or
// filters by anything but the ids of a task and its parent needs only the digest. A reader that
// looks for one id reads only the batches whose digest says that they may contain it.
//
// Packed format, little-endian: u32 version (1), u32 string count, the strings; node ip, worker id
// and node id as strings, u32 pid, u32 flags (2: C++); u32 group count, then each group (actor id,
// job id, u32 attempt, name, function, error, u8 kind, u32 events, u32 placement group). Two lists
// of ranges follow (tasks, parents), each u32 count, then u64 first and last of each range.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "observability/events/task_events.h"

namespace rt {

struct TaskDigest {
  // Events that differ only in their task and their times. Spans are not counted.
  struct Group {
    ActorId actor;  // nil if the tasks belong to no actor
    JobId job;
    uint32_t attempt = 0;
    // Indexes of strings. The error is its type alone; 0 means success.
    uint32_t name = 0, function = 0, error = 0;
    uint8_t kind = 0;  // TaskEvent::Kind
    uint32_t events = 0;
    uint32_t placement_group = 0;  // a string: the binary id of the group; 0: in none
  };
  std::string node_ip, worker_hex, node_hex;
  uint32_t pid = 0;
  bool is_cpp = false;
  std::vector<std::string> strings;
  std::vector<Group> groups;

  // Ranges of the leading numbers of task ids (see lead_of()), sorted. An empty list means that
  // nothing is known, so that the batch may contain any id.
  struct Range {
    uint64_t first, last;
  };
  std::vector<Range> tasks, parents;
  // Whether the batch may contain events of this task, or of children of this task. False is
  // certain; true is not.
  bool may_have_task(const TaskId& id) const { return may_have(tasks, id); }
  bool may_have_child_of(const TaskId& id) const { return may_have(parents, id); }

 private:
  static bool may_have(const std::vector<Range>& ranges, const TaskId& id);
};

// Makes the digest of one batch while its events are recorded. Not thread-safe.
class TaskDigestWriter {
 public:
  // Counts `events` events with these fields, all of tasks with the same tail as `task`. Spans are
  // ignored.
  void count(const TaskId& task, const TaskEventCommon& common, uint32_t events);
  // Adds the leading numbers of the counted tasks' ids.
  void add_tasks(std::span<const uint64_t> leads);
  // The packed digest; empty if there are too many groups for a digest to save anything.
  std::string pack(const TaskEventSource& source, const std::vector<std::string>& strings) const;

 private:
  // Collects numbers that arrive nearly in order as ranges: a number near a range extends it.
  class Ranges {
   public:
    void add(std::span<const uint64_t> numbers);
    // The ranges, joined where they meet; empty if there are more than kMaxRanges.
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
  std::vector<uint32_t> parents_;  // indexes of strings, without repetitions in a row
};

// Whether an event of this kind is of a constructor or method of an actor.
bool is_actor_task(uint8_t kind);
// Whether an event of this kind was recorded by the task's owner, as for a task that failed before
// or while it ran. The time during which such a task ran is not known.
bool is_recorded_by_owner(uint8_t kind);

std::string pack_task_digest(const TaskEventBatchData& batch);
// Returns kInvalid for anything that is no digest; `packed` need not be trusted.
Result<TaskDigest> unpack_task_digest(std::string_view packed);

}  // namespace rt
