// Reads the head's history of tasks for a TaskQuery. It transfers as little as possible: the
// digests of all batches, but only those batches whose tasks are shown.
#pragma once

#include <string>
#include <vector>

#include "observability/state/sources.h"
#include "observability/state/task_query.h"

namespace rt::state {

struct HistoryNotes {
  bool any = false;     // Whether the history has any task.
  int64_t dropped = 0;  // Recorded events that were removed from the history or never reached it.
  int64_t unreadable = 0;  // Events in batches that cannot be unpacked.
};

// `job_id` is a binary id, or empty for all jobs. `live_asked_us` is the wall clock time at which
// processes were asked for their live tasks. A history that cannot be read to its end in time is
// recorded in sources.missing(). An error means that the head could not be asked.
Status read_history(Sources& sources, const std::string& job_id, int64_t live_asked_us,
                    TaskQuery* query, HistoryNotes* notes);

}  // namespace rt::state
