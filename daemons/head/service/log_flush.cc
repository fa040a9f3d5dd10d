#include "daemons/head/service/log_flush.h"

#include <memory>
#include <utility>

#include "common/base/ids.h"
#include "daemons/head/service/head_server.h"

namespace rt::head {
namespace {

// A node that is stopped or out of reach holds up the end of a driver for this time.
constexpr int64_t kNodeTimeoutUs = 4'000'000;

}  // namespace

void flush_logs(const HeadServer& server, const proto::FlushLogsRequest& request,
                Reply<proto::Empty> done) {
  if (!JobId::is_valid(request.job_id()))
    return done(make_error(Code::kInvalid, "flush of logs: the job id does not have 4 bytes"));
  // Runs the reply when the last call has ended, which is now if there is none.
  std::shared_ptr<void> asked(nullptr, [done = std::move(done)](void*) { done(proto::Empty()); });
  for (const auto& [id, node] : server.core().view().cluster().nodes()) {
    auto connection = node.usable() ? server.connections().find(node.link().conn) : nullptr;
    if (!connection) continue;
    rpc::call(*connection, &proto::NodeManagerService::Stub::FlushLogs, request, kNodeTimeoutUs,
              [asked](const Result<proto::Empty>&) {});
  }
}

}  // namespace rt::head
