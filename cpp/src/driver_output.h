// The workers' output on the driver's terminal: "(name pid=12) text".
#pragma once

#include "worker/worker.h"

namespace ray::internal {

// From now on, until the worker ends. Lines come from its background thread.
void print_worker_output(rt::worker::Worker& worker);
// At the end of a program: waits shortly for what workers wrote a moment ago. Programs whose
// workers print nothing do not wait.
void settle_worker_output(const rt::worker::Worker& worker);

}  // namespace ray::internal
