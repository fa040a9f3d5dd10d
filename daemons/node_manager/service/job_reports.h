// Tells the head how submitted jobs are doing.
#pragma once

#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "daemons/node_manager/process/job_processes.h"
#include "daemons/node_manager/service/head_link.h"

namespace rt::node {

// Reports the job, unless the head is away: then report_jobs() does it after the next registration.
// Once the head has the end of a job on its disk, `jobs` forgets that end. Both `head` and `jobs`
// must outlive the call's reply; a link that is destroyed replies without touching `jobs`.
void report_job(HeadLink& head, JobProcesses& jobs, proto::SubmittedJob job, const NodeId& node);
// The jobs that report_jobs() will report, for the registration.
void list_jobs(const JobProcesses& jobs, proto::SubmittedJobsHere* here);
// Reports every job that runs, or whose end the head has not acknowledged.
void report_jobs(HeadLink& head, JobProcesses& jobs, const NodeId& node);

}  // namespace rt::node
