// Reads the head's history of tasks for a question, as little of it as answers it: the digests of
// all batches, and of the batches only those whose tasks are shown.
#pragma once

#include <string>
#include <vector>

#include "common/state/sources.h"
#include "common/state/task_query.h"

namespace rt::state {

struct HistoryNotes {
  bool any = false;  // there is a task in the history
  int64_t dropped =
      0;  // events that were recorded and are not in the history any more, or never came there
  int64_t unreadable = 0;  // events in batches that cannot be read
};

// `job_id`: binary, empty for all jobs. `live_asked_us`: wall clock when processes were asked for
// what lives.
Status read_history(Sources& sources, const std::string& job_id, int64_t live_asked_us,
                    TaskQuery* query, HistoryNotes* notes);

}  // namespace rt::state
