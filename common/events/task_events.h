// Task events: what every process records of the tasks it ran, packed for the way to the head and back.
//
// Packed batch: zstd-compressed, little-endian. u32 version (2), u32 string count, then each string (u32 length, bytes); node ip and
// worker id as strings, u32 flags (1: driver, 2: node id as string and u32 pid follow, 4: C++); then records (the fields of TaskEvent in their order; in version 1 they end
// with the kind). A record's strings are indexes into the table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace rt {

struct TaskEvent {
  TaskId task;
  uint32_t attempt = 0;
  uint32_t name = 0;          // index: task name ("__main__.f", or method)
  uint32_t function = 0;      // index: bare function name, "Class.method" for actors (cat is "task::" + this)
  uint32_t error = 0;         // index of "type\nvalue\ntraceback", 0 when it succeeded
  int64_t start_us = 0;       // wall clock: task reached the executing thread
  uint32_t deserialize_us = 0, execute_us = 0, store_us = 0;   // consecutive phases from start_us
  // Owner-failed: it ended without a word of the process that had it, or never started; recorded by its owner at the time it knew.
  enum Kind : uint8_t { kTask = 0, kActorCreation = 1, kActorMethod = 2, kSubmission = 3, kOwnerFailedTask = 4, kOwnerFailedMethod = 5 };
  uint8_t kind = kTask;
  // 0 where they are not known.
  uint32_t parent = 0;        // index: binary id of the task that submitted it
  uint32_t resources = 0;     // index: serialized proto::Resources that it asked for
  uint32_t call_site = 0;     // index
  int64_t created_us = 0;     // wall clock of its owner: it was submitted
};

struct TaskEventBatchData {
  std::string node_ip, worker_hex, node_hex;   // of the process that recorded; node_hex and pid are empty in batches of earlier releases
  uint32_t pid = 0;
  bool is_driver = false, is_cpp = false;
  std::vector<std::string> strings;     // [0] is ""
  std::vector<TaskEvent> events;
};

std::string pack_task_events(const TaskEventBatchData& batch);
// kInvalid for anything that is not a batch: sizes are checked before they are used.
Result<TaskEventBatchData> unpack_task_events(std::string_view packed);

// Chrome trace events, shape A of the timeline contract: appended to `json`, comma-separated, without the brackets.
void append_timeline(const TaskEventBatchData& batch, std::string* json);

}  // namespace rt
