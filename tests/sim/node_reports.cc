#include "tests/sim/node_reports.h"

#include "daemons/node_manager/core/job_reports.h"
#include "tests/sim/sim_head.h"

namespace rt::sim {
namespace {

constexpr int64_t kReportTimeoutUs = 30'000'000;

}  // namespace

void NodeReports::start_job(const proto::SubmittedJob& job, const Answer<proto::Empty>& answer) {
  Status started;
  const std::string& id = job.submission_id();
  environment_.drive([&](node::NodeCore& core, Now now) {
    auto held = core.hold_for_job(id, ResourceSet::from_proto(job.entrypoint_resources()), now);
    if (!held) started = held.error();
  });
  if (!started) return answer(started.error());
  started = start(job);
  if (started) return answer(proto::Empty());
  environment_.drive([&](node::NodeCore& core, Now now) { core.release_job(id, now); });
  answer(started.error());
}

Status NodeReports::start(const proto::SubmittedJob& job) {
  const std::string id = job.submission_id();
  if (running_.contains(id)) return make_error(Code::kAlreadyExists, "it runs already");
  const auto before = ended_.find(id);
  if (before != ended_.end()) {
    if (node::is_same_submission(before->second, job))
      return make_error(Code::kAlreadyExists, "it has run");
    ended_.erase(before);
  }
  const size_t number = JobLedger::job_of(job.entrypoint());
  JobRecord& known = world_.jobs.record(number);
  if (!known.plan.starts) {
    known.start_failed = true;
    return make_error(Code::kInternal, "fork: Resource temporarily unavailable");
  }
  world_.jobs.started(number);
  Running& running = running_[id];
  running.info = job;
  running.info.set_status("RUNNING");
  running.info.set_pid(1);
  environment_.after(known.plan.duration_us, "entrypoint ends", [this, id, number] {
    auto it = running_.find(id);
    if (it != running_.end() && JobLedger::job_of(it->second.info.entrypoint()) == number)
      finish(id);
  });
  report(running.info);
  return {};
}

void NodeReports::finish(const std::string& id) {
  Running ended = std::move(running_.extract(id).mapped());
  const size_t job = JobLedger::job_of(ended.info.entrypoint());
  const bool succeeds = world_.jobs.record(job).plan.succeeds;
  ended.info.set_exited(true);
  ended.info.set_end_time_ms(world_.clock.now().wall_us / 1000);
  using Run = JobRecord::Run;
  if (ended.stopping) {
    ended.info.set_status("STOPPED");
  } else if (succeeds) {
    ended.info.set_status("SUCCEEDED");
  } else {
    ended.info.set_status("FAILED");
    ended.info.set_exit_code(1);
    ended.info.set_error_type("JOB_ENTRYPOINT_COMMAND_ERROR");
  }
  world_.jobs.ended(job, ended.stopping ? Run::kStopped
                         : succeeds     ? Run::kSucceeded
                                        : Run::kFailed);
  ended_[id] = ended.info;
  report(ended.info);
  environment_.drive([&](node::NodeCore& core, Now now) { core.release_job(id, now); });
}

proto::StopJobReply NodeReports::stop_job(const std::string& id) {
  proto::StopJobReply reply;
  auto it = running_.find(id);
  if (it == running_.end()) return reply;
  reply.set_stopped(true);
  if (std::exchange(it->second.stopping, true)) return reply;
  const std::string entrypoint = it->second.info.entrypoint();
  environment_.after(world_.between(100, 500'000), "entrypoint stops", [this, id, entrypoint] {
    auto found = running_.find(id);
    if (found != running_.end() && found->second.info.entrypoint() == entrypoint) finish(id);
  });
  return reply;
}

void NodeReports::remove_log(const std::string& id) {
  if (!running_.contains(id)) ended_.erase(id);
}

void NodeReports::report(proto::SubmittedJob job) {
  if (!head_.channel()) return;
  job.set_node_id(node_.binary());
  head_.channel()->call<proto::Empty>(
      "submitted job",
      [job](Channel& at, Answer<proto::Empty> answer) {
        head_at(at).records().report_job(at, job, answer);
      },
      [this, job](const Result<proto::Empty>& reply) {
        if (job.exited() && (reply || !node::must_report_again(reply.error()))) acknowledge(job);
      },
      kReportTimeoutUs);
}

void NodeReports::acknowledge(const proto::SubmittedJob& report) {
  const auto ended = ended_.find(report.submission_id());
  if (ended != ended_.end() && node::is_same_submission(ended->second, report)) ended_.erase(ended);
}

void NodeReports::fill_jobs(proto::RegisterNodeRequest* request) const {
  proto::SubmittedJobsHere* here = request->mutable_submitted_jobs();
  for (const auto& [id, job] : running_) here->add_submission_ids(id);
  for (const auto& [id, job] : ended_) here->add_submission_ids(id);
}

void NodeReports::registered() {
  for (const auto& [id, job] : running_) report(job.info);
  for (const auto& [id, job] : ended_) report(job);
}

void NodeReports::node_ended() {
  for (const auto& [id, job] : running_)
    world_.jobs.ended(JobLedger::job_of(job.info.entrypoint()), JobRecord::Run::kLost);
  for (const auto& [id, job] : ended_)
    world_.jobs.record(JobLedger::job_of(job.entrypoint())).end_unheard = true;
  running_.clear();
  ended_.clear();
}

void NodeReports::publish(const JobId& job, const std::string& text) {
  Channel* head = head_.channel();
  if (!head) return;
  proto::HeadEvent event;
  if (job.is_nil()) {
    event.add_notices()->set_text(text);
  } else {
    proto::LogLines& lines = *event.add_logs();
    lines.set_job_id(job.binary());
    lines.add_lines(text);
  }
  head->send("lines of logs", [event](Channel& at) { head_at(at).records().publish(at, event); });
}

void NodeReports::sample(int running) {
  Channel* head = head_.channel();
  if (!head) return;
  proto::NodeSample sample;
  sample.set_node_id(node_.binary());
  sample.set_running(running);
  head->send("sample", [sample](Channel& at) { head_at(at).records().sample(sample); });
}

}  // namespace rt::sim
