// Samples of task events and batches that several tests share.
#pragma once

#include "observability/events/task_events.h"

namespace rt {

inline TaskEvent event_of(uint32_t name, uint32_t function, uint32_t error = 0, uint8_t kind = 0) {
  TaskEvent event;
  event.task = make_task_id(7, job_id_from_int(1));
  event.name = name;
  event.function = function;
  event.error = error;
  event.start_us = 1'700'000'000'000'000;
  event.deserialize_us = 10;
  event.execute_us = 200;
  event.store_us = 30;
  event.kind = kind;
  return event;
}

inline TaskEventBatchData batch_of(std::vector<TaskEvent> events) {
  TaskEventBatchData batch;
  batch.node_ip = "10.0.0.7";
  batch.worker_hex = "abcd";
  batch.strings = {"", "__main__.f", "f", "ValueError\nboom\nTraceback:\n  line 1",
                   "bad \xff\"name"};
  batch.events = std::move(events);
  return batch;
}

inline TaskEvent span_of(uint32_t type, uint32_t extra = 0) {
  TaskEvent span = event_of(type, 2, 0, TaskEvent::kSpan);
  span.deserialize_us = span.store_us = 0;
  span.call_site = extra;
  return span;
}

}  // namespace rt
