// The record of what really became of submitted jobs: what clients asked and were told, and where
// entrypoints ran and how they ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/proto/head.pb.h"

namespace rt::sim {

// A job, and what its entrypoint does.
struct JobPlan {
  std::string submission_id;
  int64_t duration_us = 0;
  bool succeeds = true;
  bool starts = true;   // its process can be made
  std::string package;  // in its runtime environment; empty: none
};

struct JobRecord {
  enum class Answer { kUnknown, kDone, kRefused };
  enum class Run { kNever, kRuns, kSucceeded, kFailed, kStopped, kLost };

  JobPlan plan;
  Answer submission = Answer::kUnknown;
  bool had_package = false;  // when it was submitted, the disk had all of its package
  bool stop_asked = false;
  bool never_to_start = false;  // it was stopped before it started
  bool deletion_asked = false, deleted = false;
  bool start_failed = false;
  Run run = Run::kNever;
  // Its node ended before the head had taken the report of the end of the entrypoint.
  bool end_unheard = false;
  // The disk of the head has forgotten what was last written: what became of the job, or that it
  // was sent to a node.
  bool forgotten = false;
};

class JobLedger {
 public:
  // Returns the number of the job, which entrypoint() names.
  size_t submitted(JobPlan plan);
  static std::string entrypoint(size_t job) { return std::to_string(job); }
  static size_t job_of(const std::string& entrypoint) { return std::stoul(entrypoint); }
  JobRecord& record(size_t job) { return jobs_.at(job); }
  const std::vector<JobRecord>& all() const { return jobs_; }

  // ---- clients
  void submit_answered(size_t job, const Status& status);
  void stop_answered(size_t job, const Result<proto::StopJobReply>& reply);
  void delete_answered(size_t job, const Status& status);
  // A client was told of this record, or of none. `asked_us` is when it asked.
  void check_shown(size_t job, const proto::SubmittedJob* shown, bool was_deleted,
                   bool was_there) const;

  // ---- nodes
  void started(size_t job);
  void ended(size_t job, JobRecord::Run how) { record(job).run = how; }

  // A head has crashed, and its disk has forgotten the last records.
  void disk_set_back();

  // Says why the head's record of a job is not the truth; empty if it is. Once nothing happens any
  // more.
  std::string untrue(const proto::SubmittedJob& shown) const;

 private:
  std::vector<JobRecord> jobs_;
};

}  // namespace rt::sim
