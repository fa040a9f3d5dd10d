// Runs py-spy against a worker or driver, on the node where the process is.
#pragma once

#include <string>

#include "common/proto/py_spy.pb.h"
#include "observability/state/query.h"

namespace rt::state {

// `node` is the id or address of a node. Returns kNotFound if there is no such living node, or no
// worker or driver on it has the process id; kUnavailable if a node did not answer.
Result<proto::PySpyReply> run_py_spy(const Cluster& cluster, const std::string& node,
                                     const proto::PySpyRequest& request, int64_t timeout_us);

}  // namespace rt::state
