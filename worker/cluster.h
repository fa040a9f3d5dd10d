// Questions to the head of the cluster, and its key-value data, as language bindings use them. Free
// functions beside Worker, because no other part of it needs them.
//
// Threads: every function may be called from any thread. All of them block. While the head cannot
// be reached they keep trying for head_reconnect_timeout_ms, then return the error.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "worker/worker.h"

namespace rt::worker {

// The alive and dead nodes with their resources. Idle leases of this process are returned first, so
// that they do not make what is available look smaller.
Result<std::vector<proto::Node>> cluster_nodes(Worker& worker);

// True when the key was added. It goes with the last job that has put it, unless one of its values
// outlives its job.
Result<bool> kv_put(Worker& worker, const std::string& ns, const std::string& key,
                    const std::string& value, bool overwrite, bool outlives_job = false);
// Fails with kNotFound when the key does not exist.
Result<std::string> kv_get(Worker& worker, const std::string& ns, const std::string& key);
Result<bool> kv_delete(Worker& worker, const std::string& ns, const std::string& key);
Result<std::vector<std::string>> kv_list(Worker& worker, const std::string& ns,
                                         const std::string& prefix);

// The actors of this process's namespace, or of all.
Result<std::vector<proto::ActorInfo>> list_actors(Worker& worker, bool all_namespaces);

// The timeline as a Chrome trace (JSON text, observability/events/timeline.h), and the number of
// events that are missing in it because they were dropped or cannot be read. This process's own
// events are sent first.
Result<std::pair<std::string, int64_t>> timeline_json(Worker& worker);

}  // namespace rt::worker
