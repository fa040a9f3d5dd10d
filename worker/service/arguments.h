// Where a task should run because of its arguments. All functions are called with the mutex held.
#pragma once

#include "worker/service/impl.h"

namespace rt::worker {

// Lets a task that may run anywhere prefer the node where its arguments lie, when they are large.
void prefer_arguments_node(Worker::Impl& impl, Task& task);

// Takes over a task whose arguments found no room on the node of `link`, and lets it run where they
// lie. Returns false, and changes nothing, for a task that may run nowhere else or was sent there
// before.
bool move_to_arguments(Worker::Impl& impl, const Link& link, Task* task);

}  // namespace rt::worker
