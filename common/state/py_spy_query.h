// py-spy on the node of a process.
#pragma once

#include <string>

#include "common/proto/py_spy.pb.h"
#include "common/state/query.h"

namespace rt::state {

// `node`: id or address. kNotFound: no living node is called that, or no worker or driver there has
// the process id.
Result<proto::PySpyReply> run_py_spy(const Cluster& cluster, const std::string& node,
                                     const proto::PySpyRequest& request, int64_t timeout_us);

}  // namespace rt::state
