// The calls by which a worker process asks the cluster for what its runtime environment needs,
// before it registers. Each call opens a connection of its own and blocks.
#pragma once

#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace rt::worker {

// Reads a value of the head's key-value store. Fails with kNotFound when the key does not exist.
Result<std::string> fetch_value(const std::string& head_address, const std::string& token,
                                const std::string& ns, const std::string& key);

// Tells the node-manager that this worker cannot make the environment it was started for. The
// tasks and actors that wait for that environment fail with `message`.
Status report_setup_failure(const std::string& node_manager_socket, const WorkerId& worker,
                            const std::string& message);

}  // namespace rt::worker
