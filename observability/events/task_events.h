// Task events: the records that every process makes of the tasks it ran. They travel to the head in
// packed batches, which the head stores as they are and readers unpack.
//
// Format of a packed batch, little-endian: u32 version (kBatchVersion in wire.h), u32 size of the
// head, the head (compressed by zstd), the columns.
//
// Head: u32 string count, then each string (u32 length, bytes); node ip and worker id as strings,
// u32 flags (1: driver, 4: C++), node id as string, u32 pid; u32 counts of events, of owners and of
// commons; u64 start and u64 creation time of the first event; the owners, each as the whole id of
// its first task (an id is a leading number, which the owner counts up, and a tail, which all tasks
// of the owner share); the commons, each as the fields of TaskEventCommon in their order, where
// kRecordedBit in the kind stands for submission_recorded.
//
// Columns: for each block of 128 events the eight columns of ColumnOf, packed as bits.h says.
// Owner, common, start and creation time are stored as differences to the previous event, the
// leading number as the difference to the previous one of the same owner, all zigzag-coded:
// consecutive events are similar, so a difference takes few bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace rt {

// Fields that many events of a batch share. All numbers except attempt and kind are indexes of the
// batch's strings; 0 means that nothing is known.
struct TaskEventCommon {
  // kOwnerFailed...: the task failed without a report of the process that had it, or never started;
  // its owner recorded the event when it learned of the failure. kSpan: not a task, but something
  // that a profiled process did during a task, which `function` names; it took execute_us.
  enum Kind : uint8_t {
    kTask = 0,
    kActorCreation = 1,
    kActorMethod = 2,
    kSpan = 3,
    kOwnerFailedTask = 4,
    kOwnerFailedMethod = 5
  };
  uint32_t attempt = 0;
  uint32_t name = 0;       // task name ("__main__.f" or a method); for a span its type ("ray.get")
  uint32_t function = 0;   // bare function name, or "Class.method" for actors
  uint32_t error = 0;      // "type\nvalue\ntraceback"; 0 if the task succeeded
  uint32_t parent = 0;     // binary id of the task that submitted it
  uint32_t resources = 0;  // serialized proto::Resources that the task requires
  // The texts of the table. For a span, call_site is its extra data, a JSON object.
#define TASK_TEXT(name) uint32_t name = 0;
#include "observability/events/task_texts.def"
#undef TASK_TEXT
  // Binary worker id of the owner, followed by the ip of its node. For owner-failed events the
  // process that the task was sent to, as a packed EventProcess.
  uint32_t owner = 0;
  uint32_t placement_group = 0;  // binary id of the group in which it ran; 0: in none
  uint8_t kind = kTask;
  bool submission_recorded = false;  // the owner has recorded the submission as a span

  friend bool operator==(const TaskEventCommon&, const TaskEventCommon&) = default;
};

// The fields that are indexes of strings, in the order in which a batch has them: what writes,
// reads, checks and compares them goes through this list. A batch with another list is another
// version of the format.
inline constexpr std::array kCommonTexts = {
    &TaskEventCommon::name,   &TaskEventCommon::function,       &TaskEventCommon::error,
    &TaskEventCommon::parent, &TaskEventCommon::resources,
#define TASK_TEXT(name) &TaskEventCommon::name,
#include "observability/events/task_texts.def"
#undef TASK_TEXT
    &TaskEventCommon::owner,  &TaskEventCommon::placement_group};
// None is missing: all but the attempt and the two bytes at the end are such fields.
static_assert(sizeof(TaskEventCommon) == (kCommonTexts.size() + 2) * sizeof(uint32_t));

// Whether all of them name one of `strings` strings.
inline bool names_strings(const TaskEventCommon& event, size_t strings) {
  return std::all_of(kCommonTexts.begin(), kCommonTexts.end(),
                     [&](auto text) { return event.*text < strings; });
}

struct TaskEventTimes {
  int64_t start_us = 0;    // wall clock time when the task reached the executing thread
  int64_t created_us = 0;  // the owner's wall clock time of the submission; 0 if not known
  // Durations of the consecutive phases from start_us on.
  int64_t deserialize_us = 0, execute_us = 0, store_us = 0;
};

struct TaskEvent : TaskEventCommon, TaskEventTimes {
  TaskId task;
};

// The process that recorded a batch.
struct TaskEventSource {
  std::string node_ip, worker_hex, node_hex;
  uint32_t pid = 0;
  bool is_driver = false, is_cpp = false;
};

struct TaskEventBatchData : TaskEventSource {
  std::vector<std::string> strings;  // [0] is ""
  std::vector<TaskEvent> events;     // at most kMaxBatchEvents
};

// The process that an owner-failed task was sent to, in whose log its output is.
struct EventProcess {
  std::string worker_id, node_id;  // binary
  int64_t pid = 0;
};
std::string pack_event_process(const EventProcess& process);
// Returns nullopt for anything else, such as an empty string, which stands for an unknown process.
std::optional<EventProcess> unpack_event_process(std::string_view packed);

// A task id consists of a leading number, which the owner counts up, and a tail, which is the same
// for all tasks of an owner, a job and an actor.
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

// Batches with more events are refused: an event takes a few bits in a batch, but about a hundred
// bytes when it is unpacked. The setting task_events_buffer has this as its upper limit.
inline constexpr size_t kMaxBatchEvents = 1'000'000;
// Set in a packed kind if submission_recorded.
inline constexpr uint8_t kRecordedBit = 0x80;

// Packs a complete batch. Processes that record events one by one use TaskEventWriter.
std::string pack_task_events(const TaskEventBatchData& batch);
// Returns kInvalid for anything that is not a batch. `packed` need not be trusted: sizes are
// checked before they are used.
Result<TaskEventBatchData> unpack_task_events(std::string_view packed);

}  // namespace rt
