#include "daemons/head/core/jobs.h"

namespace rt::head {

Jobs::Jobs(Journal& journal) : journal_(journal) {}

Jobs::~Jobs() = default;

void Jobs::recover(const proto::JobInfo& job) {
  uint32_t number = job_id_to_int(JobId::from_binary(job.job_id()));
  jobs_[number] = job;
  if (job.finished()) finished_.push_back(number);
  next_ = std::max(next_, number + 1);
}

proto::JobInfo& Jobs::add(const proto::AddJobRequest& request, const std::string& default_namespace,
                          Now now) {
  uint32_t number = next_++;
  JobId id = job_id_from_int(number);
  proto::JobInfo& job = jobs_[number];
  job.set_job_id(id.binary());
  *job.mutable_config() = request.config();
  job.mutable_config()->set_job_id(id.binary());
  if (job.config().ray_namespace().empty())
    job.mutable_config()->set_ray_namespace(default_namespace);
  job.set_driver_ip(request.ip());
  job.set_driver_pid(request.pid());
  // A new driver has no worker id of its own yet.
  bool named = WorkerId::is_valid(request.worker_id()) &&
               !WorkerId::from_binary(request.worker_id()).is_nil();
  job.set_driver_worker_id(named ? request.worker_id() : driver_worker_id(id).binary());
  job.set_driver_node_id(request.node_id());
  job.set_start_time_ms(now.wall_us / 1000);
  journal_.put(table::kJobs, id.binary(), job.SerializeAsString());
  journal_.put(table::kMeta, "next_job", counter());
  return job;
}

const proto::JobInfo* Jobs::of_driver(const proto::AddJobRequest& request) const {
  if (!WorkerId::is_valid(request.worker_id()) ||
      WorkerId::from_binary(request.worker_id()).is_nil())
    return nullptr;
  for (auto it = jobs_.rbegin(); it != jobs_.rend(); ++it) {
    const proto::JobInfo& job = it->second;
    if (!job.finished() && job.driver_worker_id() == request.worker_id() &&
        job.driver_node_id() == request.node_id() && job.driver_pid() == request.pid())
      return &job;
  }
  return nullptr;
}

void Jobs::remove(const JobId& id) { jobs_.erase(job_id_to_int(id)); }

bool Jobs::finish(const JobId& id, Now now) {
  auto it = jobs_.find(job_id_to_int(id));
  if (it == jobs_.end() || it->second.finished()) return false;
  it->second.set_finished(true);
  it->second.set_end_time_ms(now.wall_us / 1000);
  finished_.push_back(it->first);
  journal_.put(table::kJobs, id.binary(), it->second.SerializeAsString());
  return true;
}

void Jobs::forget_finished(size_t limit) {
  while (finished_.size() > limit) {
    jobs_.erase(finished_.front());
    journal_.erase(table::kJobs, job_id_from_int(finished_.front()).binary());
    finished_.pop_front();
  }
}

const proto::JobInfo* Jobs::find(const JobId& id) const {
  auto it = jobs_.find(job_id_to_int(id));
  return it == jobs_.end() ? nullptr : &it->second;
}

bool Jobs::running(const JobId& id) const {
  const proto::JobInfo* job = find(id);
  return job && !job->finished();
}

std::vector<JobId> Jobs::running_on(const NodeId& node) const {
  std::vector<JobId> out;
  for (const auto& [number, job] : jobs_) {
    if (!job.finished() && job.driver_node_id() == node.view())
      out.push_back(job_id_from_int(number));
  }
  return out;
}

std::vector<JobId> Jobs::finished() const {
  std::vector<JobId> out;
  for (uint32_t number : finished_) out.push_back(job_id_from_int(number));
  return out;
}

std::optional<std::string> Jobs::record(const std::string& key) const {
  const proto::JobInfo* job = JobId::is_valid(key) ? find(JobId::from_binary(key)) : nullptr;
  if (!job) return std::nullopt;
  return job->SerializeAsString();
}

void Jobs::check_invariants() const {
  size_t finished = 0;
  for (const auto& [number, job] : jobs_) {
    RT_CHECK(number > 0 && number < next_);
    RT_CHECK(job_id_to_int(JobId::from_binary(job.job_id())) == number);
    finished += job.finished();
  }
  RT_CHECK(finished == finished_.size());
}

}  // namespace rt::head
