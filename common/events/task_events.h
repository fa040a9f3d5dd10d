// Task events: what every process records of the tasks it ran, packed for the way to the head and
// back.
//
// Packed batch, little-endian: u32 version (4), u32 size of the head, the head (compressed by
// zstd), the columns. Head: u32 string count, then each string (u32 length, bytes); node ip and
// worker id as strings, u32 flags (1: driver, 4: C++), node id as string, u32 pid; u32 counts of
// events, of owners and of commons; u64 the first event's start and creation; the owners: each the
// whole id of its first task (an id is a leading number, which its owner counts up, and a tail,
// which its tasks have in common); the commons: the fields of TaskEventCommon in their order (the
// kind with kRecordedBit on it where that is so). Columns: for each 128 events in turn the eight of
// ColumnOf, each as bits.h says. Owner, common, start and creation are differences to the event
// before, the leading number to the one before of the same owner, all of them zigzag-coded:
// neighbours are mostly alike, and cost a few bits. Histories on disk have batches of earlier
// versions, too: task_events_before.h reads them.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace rt {

// What many events of a batch have in common. Numbers but for attempt and kind are indexes of the
// batch's strings; 0 where nothing is known.
struct TaskEventCommon {
  // Owner-failed: it ended without a word of the process that had it, or never started; recorded by
  // its owner at the time it knew. Span: no task, but what a process that profiles did in one
  // (`function` is that task's); how long is execute_us.
  enum Kind : uint8_t {
    kTask = 0,
    kActorCreation = 1,
    kActorMethod = 2,
    kSpan = 3,
    kOwnerFailedTask = 4,
    kOwnerFailedMethod = 5
  };
  uint32_t attempt = 0;
  uint32_t name = 0;       // task name ("__main__.f", or method); of a span its type ("ray.get")
  uint32_t function = 0;   // bare function name, "Class.method" for actors (cat is "task::" + this)
  uint32_t error = 0;      // "type\nvalue\ntraceback", 0 when it succeeded
  uint32_t parent = 0;     // binary id of the task that submitted it
  uint32_t resources = 0;  // serialized proto::Resources that it asked for
  uint32_t call_site = 0;  // of a span its extra data: a JSON object
  uint32_t owner = 0;      // binary worker id of its owner, then the ip of that one's node; of the
                           // owner-failed the process that had it (EventProcess)
  uint8_t kind = kTask;
  bool submission_recorded = false;  // by its owner, as a span

  friend bool operator==(const TaskEventCommon&, const TaskEventCommon&) = default;
};

struct TaskEventTimes {
  int64_t start_us = 0;    // wall clock: task reached the executing thread
  int64_t created_us = 0;  // wall clock of its owner: it was submitted; 0: not known
  int64_t deserialize_us = 0, execute_us = 0, store_us = 0;  // consecutive phases from start_us
};

struct TaskEvent : TaskEventCommon, TaskEventTimes {
  TaskId task;
};

// The process that recorded.
struct TaskEventSource {
  std::string node_ip, worker_hex,
      node_hex;  // node_hex and pid are empty in batches of earlier releases
  uint32_t pid = 0;
  bool is_driver = false, is_cpp = false;
};

struct TaskEventBatchData : TaskEventSource {
  std::vector<std::string> strings;  // [0] is ""
  std::vector<TaskEvent> events;     // at most kMaxBatchEvents
};

// The process that an owner-failed task was sent to: where its lines are.
struct EventProcess {
  std::string worker_id, node_id;  // binary
  int64_t pid = 0;
};
std::string pack_event_process(const EventProcess& process);
// Nothing for what is none: earlier releases did not say.
std::optional<EventProcess> unpack_event_process(std::string_view packed);

// An id is a leading number, which an owner counts up, and a tail: of the same owner, job and actor
// that is the same.
inline constexpr size_t kTaskLeadBytes = 8, kTaskTailBytes = TaskId::kSize - kTaskLeadBytes;
inline uint64_t lead_of(const TaskId& id) {
  uint64_t lead;
  std::memcpy(&lead, id.data(), kTaskLeadBytes);
  return lead;
}
inline bool same_tail(const TaskId& a, const TaskId& b) {
  static_assert(kTaskTailBytes == 2 * sizeof(uint64_t));
  uint64_t of_a[2], of_b[2];
  std::memcpy(of_a, a.data() + kTaskLeadBytes, kTaskTailBytes);
  std::memcpy(of_b, b.data() + kTaskLeadBytes, kTaskTailBytes);
  return ((of_a[0] ^ of_b[0]) | (of_a[1] ^ of_b[1])) == 0;
}

// More are refused: each is some bits of a batch and a hundred bytes in memory. The setting
// task_events_buffer goes no further.
inline constexpr size_t kMaxBatchEvents = 1'000'000;
// On a packed kind: submission_recorded.
inline constexpr uint8_t kRecordedBit = 0x80;

// Who records events one by one uses TaskEventWriter.
std::string pack_task_events(const TaskEventBatchData& batch);
// kInvalid for anything that is not a batch: sizes are checked before they are used.
Result<TaskEventBatchData> unpack_task_events(std::string_view packed);

}  // namespace rt
