// A worker's stdout and stderr: before the first output of another function comes a marker line,
// from which the node-manager knows whose lines follow. Functions that print nothing cost nothing.
#pragma once

#include <string>

#include "common/base/ids.h"

namespace ray::internal {

// Once, at start: stdio and iostreams of this process go through markers.
void mark_output();
// What runs now: lines like ":job_id:<hex>" and ":task_name:<name>". `marker` must stay valid for
// the life of the process. The task's own line comes before the first output of every task.
void set_output_marker(const std::string* marker, const rt::TaskId& task, int attempt);

}  // namespace ray::internal
