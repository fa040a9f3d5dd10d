// Task events: what every process records of the tasks it ran, packed for the way to the head and back.
//
// Packed batch: zstd-compressed, little-endian. u32 version (1), u32 string count, then each string (u32 length, bytes); node ip and
// worker id as strings, u32 flags (1: driver); then records of 61 bytes (the fields of TaskEvent in their order). A record's strings
// are indexes into the table.
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
  uint8_t kind = 0;           // 0 task, 1 actor creation, 2 actor method, 3 submission (driver side)
};

struct TaskEventBatchData {
  std::string node_ip, worker_hex;
  bool is_driver = false;
  std::vector<std::string> strings;     // [0] is ""
  std::vector<TaskEvent> events;
};

std::string pack_task_events(const TaskEventBatchData& batch);
// kInvalid for anything that is not a batch: sizes are checked before they are used.
Result<TaskEventBatchData> unpack_task_events(std::string_view packed);

// Chrome trace events, shape A of the timeline contract: appended to `json`, comma-separated, without the brackets.
void append_timeline(const TaskEventBatchData& batch, std::string* json);

}  // namespace rt
