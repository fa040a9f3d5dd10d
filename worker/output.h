// The output of workers at the end of a driver. A free function beside Worker, because no other
// part of it needs this.
//
// Threads: it may be called from any thread.
#pragma once

#include "worker/worker.h"

namespace rt::worker {

// Waits until all that workers of this job have printed by now, on whatever node, has been handed
// to Options::log_sink or will be by stop(). Gives up when the head is lost, when the worker stops,
// or after five seconds.
void await_output(Worker& worker);

}  // namespace rt::worker
