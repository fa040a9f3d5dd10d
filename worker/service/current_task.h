// Says for which task the calling thread acts.
#pragma once

#include "common/base/ids.h"

namespace rt::worker {

class ExecutingTaskImpl;

// The task that this thread executes, for Worker::current_task() and reports of blocked workers.
extern thread_local ExecutingTaskImpl* t_current_task;
// The parent of the tasks that this thread submits while t_current_task is null; see submit_for().
extern thread_local TaskId t_submit_for;
// The parent of the tasks that this thread submits at the moment; nil when there is none.
TaskId submitting_task();

}  // namespace rt::worker
