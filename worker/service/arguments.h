// Decides on which node a task should run because of its arguments.
#pragma once

#include "daemons/object_store/client/store_client.h"
#include "worker/core/submitter.h"
#include "worker/service/link.h"
#include "worker/service/lock.h"
#include "worker/service/node_directory.h"
#include "worker/service/notices.h"

namespace rt::worker {

// Lets a task that may run anywhere prefer the node where its arguments lie, when they are large.
// `store` is the object store of this node, `here`; null if it runs none.
void prefer_arguments_node(Task& task, const NodeId& here, const store::StoreClient* store,
                           Submitter& submitter) REQUIRES(worker_mutex);

// Takes over a task whose arguments found no room on the node `full`, to which `link` leads, and
// lets it run where they lie. Returns false, and changes nothing, for a task that may run nowhere
// else or was moved before.
bool move_to_arguments(Task* task, const Link& link, const NodeId& full, const NodeDirectory& nodes,
                       Notices& notices, Submitter& submitter) REQUIRES(worker_mutex);

}  // namespace rt::worker
