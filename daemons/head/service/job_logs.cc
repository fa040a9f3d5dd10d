#include "daemons/head/service/job_logs.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemons/head/service/head_server.h"

namespace rt::head {
namespace {

constexpr int64_t kFirstPauseUs = 20'000, kMaxPauseUs = 200'000;
constexpr int64_t kReadTimeoutUs = 10'000'000;

bool ended(const proto::SubmittedJob& job) {
  return job.status() != "PENDING" && job.status() != "RUNNING";
}

Error out_of_reach(Code code, const proto::SubmittedJob& job, std::string_view why) {
  return make_error(code, fmt::format("the output of job {} is on node {}{}", job.submission_id(),
                                      to_hex(job.node_id()), why));
}

}  // namespace

struct JobLogs::Wait {
  proto::JobLogsRequest request;
  std::shared_ptr<rpc::Connection> asker;
  Done done;
  int64_t deadline_us = 0;
  int64_t pause_us = kFirstPauseUs;
};

void JobLogs::read(const proto::JobLogsRequest& request, std::shared_ptr<rpc::Connection> asker,
                   Done done) {
  if (request.offset() < 0 || request.max_bytes() < 0 || request.wait_ms() < 0)
    return done(
        make_error(Code::kInvalid, "job logs: offset, max_bytes and wait_ms are not negative"));
  const Settings& settings = server_.settings();
  auto wait = std::make_shared<Wait>(Wait{request, std::move(asker), std::move(done)});
  wait->deadline_us =
      steady_now_us() + std::min(request.wait_ms(), settings.job_log_wait_max_ms) * 1000;
  int64_t bound = settings.job_log_chunk_bytes;
  wait->request.set_max_bytes(request.max_bytes() > 0 ? std::min(request.max_bytes(), bound)
                                                      : bound);
  step(std::move(wait));
}

void JobLogs::step(std::shared_ptr<Wait> wait) {
  auto job = server_.core().view().submitted_job(wait->request.submission_id());
  if (!job) return wait->done(job.error());
  if (job->node_id().empty()) return retry_or_finish(std::move(wait), *job);
  auto node = connected_node(server_.core().view().cluster(), NodeId::from_binary(job->node_id()));
  std::shared_ptr<rpc::Connection> connection =
      node ? server_.connections().find(node->conn) : nullptr;
  if (!connection) {
    Error away = out_of_reach(Code::kUnavailable, *job, ", which is not connected");
    // The node of a running job may come back.
    if (!ended(*job)) return retry_or_finish(std::move(wait), *job, std::move(away));
    const NodeState* known =
        server_.core().view().cluster().find(NodeId::from_binary(job->node_id()));
    if (known && known->alive()) return wait->done(std::move(away));
    return wait->done(out_of_reach(Code::kNodeDied, *job, ", which is gone"));
  }
  proto::ReadJobLogRequest request;
  request.set_submission_id(wait->request.submission_id());
  request.set_offset(wait->request.offset());
  request.set_max_bytes(wait->request.max_bytes());
  // Replies with the job as it was before the read: if it had ended by then, an empty answer means
  // that everything has been read.
  rpc::call(*connection, &proto::NodeManagerService::Stub::ReadJobLog, request, kReadTimeoutUs,
            [this, alive = alive_, wait = std::move(wait),
             job = *job](Result<proto::ReadJobLogReply> log) mutable {
              if (!*alive) return;
              if (!log && log.error().code == Code::kUnavailable && !ended(job))
                return retry_or_finish(
                    std::move(wait), job,
                    out_of_reach(Code::kUnavailable, job, ": " + log.error().message));
              if (!log && log.error().code != Code::kNotFound) return wait->done(log.error());
              if (!log || log->data().empty()) return retry_or_finish(std::move(wait), job);
              proto::JobLogsReply reply;
              reply.set_data(std::move(*log->mutable_data()));
              reply.set_next_offset(log->next_offset());
              reply.set_size(log->size());
              *reply.mutable_job() = job;
              wait->done(std::move(reply));
            });
}

void JobLogs::retry_or_finish(std::shared_ptr<Wait> wait, const proto::SubmittedJob& job,
                              std::optional<Error> failure) {
  int64_t left_us = wait->deadline_us - steady_now_us();
  bool nobody = wait->asker && !wait->asker->is_open();
  // A client that follows the output asks again. Any other must not take the lack of an answer for
  // a lack of output.
  if (failure && left_us <= 0 && wait->request.wait_ms() == 0)
    return wait->done(std::move(*failure));
  if (ended(job) || left_us <= 0 || nobody) {
    proto::JobLogsReply reply;
    reply.set_next_offset(wait->request.offset());
    *reply.mutable_job() = job;
    return wait->done(std::move(reply));
  }
  int64_t pause_us = std::min(wait->pause_us, left_us);
  wait->pause_us = std::min(kMaxPauseUs, wait->pause_us * 2);
  server_.loop().run_after(pause_us, [this, alive = alive_, wait = std::move(wait)]() mutable {
    if (*alive) step(std::move(wait));
  });
}

}  // namespace rt::head
