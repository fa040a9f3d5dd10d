// The arguments of tasks that lie in object stores, and copies. All functions are called with the
// mutex held.
#pragma once

#include "worker/service/impl.h"

namespace rt::worker {

// Lets a task that may run anywhere prefer the node where its arguments lie, when they are large.
void prefer_arguments_node(Worker::Impl& impl, Task& task);

// Takes over a task whose arguments found no room on the node of `link`, and lets it run where they
// lie. Returns false, and changes nothing, for a task that may run nowhere else or was sent there
// before.
bool move_to_arguments(Worker::Impl& impl, const Link& link, Task* task);

// Whether this process is an actor that runs one call at a time, each caller's in their order.
bool is_plain_actor(const Worker::Impl& impl);

// Called when a plain actor is blocked: takes the arguments from the calls behind the one that
// runs, because what that one waits for may need their room. They are fetched again afterwards
// (Impl::fetch_args()).
void give_arguments_back(Worker::Impl& impl);

}  // namespace rt::worker
