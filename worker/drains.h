// Nodes that drain, as language bindings hear of them. A free function beside Worker, because no
// other part of it needs this.
//
// Threads: it may be called from any thread.
#pragma once

#include <map>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "worker/worker.h"

namespace rt::worker {

// Waits until the living nodes that drain, or their deadlines, are others than `known`, and then
// replaces it. The news come from this node's node-manager; the head is not asked. kFailed: the
// worker stops.
Waited wait_for_drains(Worker& worker, std::map<NodeId, proto::NodeDrain>* known,
                       int64_t deadline_us);

}  // namespace rt::worker
