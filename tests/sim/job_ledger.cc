#include "tests/sim/job_ledger.h"

#include <fmt/core.h>

#include "tests/sim/ledger.h"

namespace rt::sim {
namespace {

constexpr char kNodeDied[] = "JOB_SUPERVISOR_ACTOR_DIED";
constexpr char kStartError[] = "JOB_ENTRYPOINT_COMMAND_START_ERROR";
constexpr char kStartTimeout[] = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT";

}  // namespace

size_t JobLedger::submitted(JobPlan plan) {
  JobRecord added{.plan = std::move(plan)};
  // A request about an earlier job of this id may still be on its way.
  for (const JobRecord& other : jobs_) {
    if (other.plan.submission_id != added.plan.submission_id) continue;
    added.stop_asked |= other.stop_asked;
    added.deletion_asked |= other.deletion_asked;
  }
  jobs_.push_back(std::move(added));
  return jobs_.size() - 1;
}

void JobLedger::submit_answered(size_t job, const Status& status) {
  if (!status && may_recover(status.error().code)) return;
  record(job).submission = status ? JobRecord::Answer::kDone : JobRecord::Answer::kRefused;
}

void JobLedger::stop_answered(size_t job, const Result<proto::StopJobReply>& reply) {
  JobRecord& known = record(job);
  if (reply && reply->stopped() && known.run == JobRecord::Run::kNever) known.never_to_start = true;
}

void JobLedger::delete_answered(size_t job, const Status& status) {
  if (status) record(job).deleted = true;
}

void JobLedger::check_shown(size_t job, const proto::SubmittedJob* shown, bool was_deleted,
                            bool was_there) const {
  const JobRecord& known = jobs_.at(job);
  const bool same = shown && job_of(shown->entrypoint()) == job;
  if (same && was_deleted)
    violation(
        fmt::format("job {} ({}) is shown after its deletion", job, known.plan.submission_id));
  if (!same && was_there && !known.deletion_asked)
    violation(
        fmt::format("job {} ({}) was submitted and is not shown", job, known.plan.submission_id));
}

void JobLedger::started(size_t job) {
  JobRecord& known = record(job);
  const std::string which =
      fmt::format("the entrypoint of job {} ({})", job, known.plan.submission_id);
  if (known.run != JobRecord::Run::kNever && !known.forgotten)
    violation(which + " starts for the second time");
  if (known.submission == JobRecord::Answer::kRefused)
    violation(which + " starts, and its submission was refused");
  if (known.never_to_start) violation(which + " starts after the job was stopped");
  known.run = JobRecord::Run::kRuns;
}

void JobLedger::disk_set_back() {
  for (JobRecord& job : jobs_) job.forgotten = job.end_unheard = true;
}

std::string JobLedger::untrue(const proto::SubmittedJob& shown) const {
  using Run = JobRecord::Run;
  const size_t job = job_of(shown.entrypoint());
  const JobRecord& known = jobs_.at(job);
  const bool node_died = shown.status() == "FAILED" && shown.error_type() == kNodeDied;
  const bool failed = shown.status() == "FAILED" && !node_died;
  bool is_true = false;
  const char* truth = "";
  switch (known.run) {
    case Run::kNever:
      truth = "has never started";
      is_true = (shown.status() == "STOPPED" && known.stop_asked) || node_died ||
                (failed && shown.error_type() == kStartTimeout) ||
                (failed && shown.error_type() == kStartError && known.start_failed);
      break;
    case Run::kRuns: truth = "runs"; break;
    case Run::kSucceeded:
      truth = "has succeeded";
      is_true = shown.status() == "SUCCEEDED" || (known.end_unheard && node_died);
      break;
    case Run::kFailed:
      truth = "has failed";
      is_true = (failed && shown.exited()) || (known.end_unheard && node_died);
      break;
    case Run::kStopped:
      truth = "was stopped";
      is_true = shown.status() == "STOPPED" || (known.end_unheard && node_died);
      break;
    case Run::kLost:
      truth = "was lost with its node";
      is_true = node_died;
      break;
  }
  if (known.submission == JobRecord::Answer::kRefused) truth = "was refused", is_true = false;
  if (known.deleted) truth = "was deleted", is_true = false;
  if (is_true) return "";
  return fmt::format("job {} ({}) {}, and is {} ({}) for the head", job, known.plan.submission_id,
                     truth, shown.status(), shown.error_type());
}

}  // namespace rt::sim
