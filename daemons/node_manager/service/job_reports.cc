#include "daemons/node_manager/service/job_reports.h"

#include "daemons/node_manager/core/job_reports.h"

namespace rt::node {
namespace {

constexpr int64_t kReportTimeoutUs = 30'000'000;

}  // namespace

void report_job(HeadLink& head, JobProcesses& jobs, proto::SubmittedJob job, const NodeId& node) {
  if (!head.connection()) return;
  job.set_node_id(node.binary());
  rpc::call(*head.connection(), &proto::HeadService::Stub::ReportSubmittedJob, job,
            kReportTimeoutUs, [&jobs, job](Result<proto::Empty> reply) {
              if (job.exited() && (reply || !must_report_again(reply.error())))
                jobs.acknowledge(job);
            });
}

void list_jobs(const JobProcesses& jobs, proto::SubmittedJobsHere* here) {
  for (const proto::SubmittedJob& job : jobs.reports())
    here->add_submission_ids(job.submission_id());
}

void report_jobs(HeadLink& head, JobProcesses& jobs, const NodeId& node) {
  for (const proto::SubmittedJob& job : jobs.reports()) report_job(head, jobs, job, node);
}

}  // namespace rt::node
