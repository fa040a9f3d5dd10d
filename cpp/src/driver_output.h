// Workers' output on the driver's terminal: "(name pid=12) text".
#pragma once

#include "worker/worker.h"

namespace ray::internal {

// Prints workers' output until the worker library ends. Its background thread does the printing.
void print_worker_output(rt::worker::Worker& worker);
// Waits, at the end of a program, for output that workers wrote a moment ago, but at most a second.
// Programs whose workers print nothing do not wait.
void settle_worker_output(const rt::worker::Worker& worker);

}  // namespace ray::internal
