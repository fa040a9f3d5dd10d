// Reads the output of submitted jobs for clients that follow it: asks the job's node-manager, and
// waits a bounded time for more output.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/proto/head.pb.h"
#include "common/rpc/client.h"
#include "daemons/head/core/types.h"

namespace rt::head {

class HeadServer;

// Loop thread only. Reads that are under way when this is destroyed are never answered.
class JobLogs {
 public:
  using Done = Reply<proto::JobLogsReply>;

  explicit JobLogs(HeadServer& server) : server_(server) {}
  ~JobLogs() { *alive_ = false; }

  // Replies when there is output from request.offset() on, when the job has ended, or after
  // wait_ms (at most job_log_wait_max_ms). Fails with kNotFound for an unknown job, kUnavailable
  // or kNodeDied when the job has ended and its node is not connected, and kUnavailable when
  // wait_ms is 0 and the node does not answer. If `asker` is not null, the wait ends once that
  // connection is closed.
  void read(const proto::JobLogsRequest& request, std::shared_ptr<rpc::Connection> asker,
            Done done);

 private:
  struct Wait;
  void step(std::shared_ptr<Wait> wait);
  // `failure` says why there was no answer of the job's node.
  void retry_or_finish(std::shared_ptr<Wait> wait, const proto::SubmittedJob& job,
                       std::optional<Error> failure = {});

  HeadServer& server_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::head
