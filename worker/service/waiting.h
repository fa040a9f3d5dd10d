// Tells the node-manager how many tasks and calls of this process wait, for `rayctl status`. All
// functions are called with the mutex held.
#pragma once

#include "worker/service/impl.h"

namespace rt::worker {

constexpr int64_t kReportWaitingAfterUs = 500'000;

// Tells the numbers, and again as long as calls are held back.
void say_what_waits(Worker::Impl& impl);
// Looks a moment later whether calls of this actor wait for their turn.
void watch_turns(Worker::Impl& impl);

}  // namespace rt::worker
