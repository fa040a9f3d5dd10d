// A worker's stdout and stderr with marker lines: a marker precedes the first output of another
// function, and tells the node-manager to whom the lines belong. Functions that print nothing cost
// nothing.
#pragma once

#include <string>

#include "common/base/ids.h"

namespace ray::internal {

// Called once at start: from then on stdio and iostreams of this process write markers.
void mark_output();
// Sets what runs: `marker` has lines like ":job_id:<hex>" and ":task_name:<name>" and must stay
// valid for the life of the process. The first output of each task also gets a line with the
// task's id.
void set_output_marker(const std::string* marker, const rt::TaskId& task, int attempt);
// Writes what was printed without a newline. To be called before the answer of a task leaves, so
// that who has the answer finds such text in the log files.
void flush_output();

}  // namespace ray::internal
