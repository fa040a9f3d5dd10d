// Brings the last output of workers to a driver that is about to end.
#pragma once

#include "common/proto/head.pb.h"
#include "daemons/head/core/types.h"

namespace rt::head {

class HeadServer;

// Asks every connected node-manager for what its workers have printed. Replies when each of them
// has sent it, or has not answered within some seconds. What they have sent has been passed on to
// the subscribers of the job by then: a node sends it over the connection of its answer. Fails with
// kInvalid if the id of the job is none. Loop thread only.
void flush_logs(const HeadServer& server, const proto::FlushLogsRequest& request,
                Reply<proto::Empty> done);

}  // namespace rt::head
