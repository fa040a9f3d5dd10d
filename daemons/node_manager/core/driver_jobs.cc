#include "daemons/node_manager/core/driver_jobs.h"

namespace rt::node {

void DriverJobs::ask(OwnerId driver) { asking_.insert(driver); }

JobId DriverJobs::answered(OwnerId driver, const JobId& job) {
  return asking_.erase(driver) > 0 ? JobId::nil() : job;
}

void DriverJobs::joined(OwnerId driver, const proto::JobInfo& job) { jobs_[driver] = job; }

JobId DriverJobs::left(OwnerId driver) {
  asking_.erase(driver);
  const auto gone = jobs_.extract(driver);
  return gone.empty() ? JobId::nil() : JobId::from_binary(gone.mapped().job_id());
}

void DriverJobs::fill(proto::RegisterNodeRequest* request) const {
  for (const auto& [driver, job] : jobs_) *request->add_live_jobs() = job;
}

}  // namespace rt::node
