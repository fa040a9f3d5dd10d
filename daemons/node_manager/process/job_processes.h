// The entrypoints of submitted jobs. Each is a shell in a session of its own, with its output in
// the rotated log logs/job-driver-<submission id>.log. Every change of a job's status is reported,
// and the report of its end is kept until it is acknowledged.
// Jobs that run when this object is destroyed are killed, and the rest of their output is lost.
//
// Threads: the loop's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/net/loop.h"
#include "common/proto/head.pb.h"
#include "daemons/node_manager/process/job_guard.h"
#include "daemons/node_manager/process/job_output.h"
#include "daemons/node_manager/process/process.h"
#include "daemons/node_manager/process/reaper.h"

namespace rt::node {

class JobProcesses {
 public:
  struct Options {
    std::string session_dir;
    // The interpreter, and the directory that holds the `ray` package. Both are made available to
    // the entrypoint through PATH and PYTHONPATH, so that `python prog.py` finds `ray`.
    std::string python, python_path;
    std::string head_address;       // the job's RAY_ADDRESS
    size_t max_log_chunk = 262144;  // bytes per read_log()
  };
  using Report = std::function<void(const proto::SubmittedJob&)>;

  JobProcesses(net::Loop& loop, Reaper& reaper, Options options, Report report);
  ~JobProcesses();

  // Starts the entrypoint with `env` added to this process's environment, and reports RUNNING
  // before it returns. Returns kAlreadyExists if the job is running or its end has not been
  // acknowledged, kInvalid if the job or a setting in its environment is invalid, and otherwise why
  // the process or its log could not be made. A job that has the id of one that has ended, and was
  // submitted at another time, replaces it: the head has deleted that one.
  Status start(const proto::SubmittedJob& job, const std::map<std::string, std::string>& env);
  // Sends SIGTERM to the job's process group, and SIGKILL after 3 s. The job's environment may
  // choose otherwise (RAY_JOB_STOP_SIGNAL, RAY_JOB_STOP_WAIT_TIME_S). Returns false if it is not
  // running.
  bool stop(const std::string& submission_id);
  void stop_all(int signal);
  bool running() const { return !jobs_.empty(); }
  // The last report of each running job, and of each job whose end was not acknowledged.
  std::vector<proto::SubmittedJob> reports() const;
  // The head has this report of a job's end on its disk, or wants to hear no more of the job.
  void acknowledge(const proto::SubmittedJob& report);
  struct Chunk {
    std::string data;
    int64_t next_offset = 0;
    int64_t size = 0;  // bytes written so far, including those that rotation has removed
  };
  // Reads across the pieces of a job's log. If rotation has removed bytes from `offset` on, `data`
  // begins with a line that says how many. Returns kNotFound if this object has no such log.
  Result<Chunk> read_log(const std::string& submission_id, int64_t offset, int64_t max_bytes) const;
  // Removes the log of a job that has ended, and the report of its end; the log of a running job
  // stays. Processes that still write go on, and their output is discarded.
  void remove_log(const std::string& submission_id);
  // Returns the job's log that has this file name, or null. Valid until the next event of the
  // loop.
  const RotatedLog* log_of_file(const std::string& name) const;

 private:
  struct Job {
    proto::SubmittedJob info;
    ProcessId process;
    std::unique_ptr<JobGuard> guard;
    bool makes_environment = false;  // the runtime environment is made before the entrypoint runs
    bool stopping = false;
    bool killed = false;  // SIGKILL has been sent
    // While stopping: exit status of the shell, whose group still has processes that clean up.
    std::optional<int> ended;
    net::Loop::TimerId group_timer = 0;
    int stop_signal = 0;
    int64_t stop_grace_us = 0;
    net::Loop::TimerId kill_timer = 0;
  };
  std::string log_path(const std::string& submission_id) const;
  void forget_output(const std::string& submission_id);
  std::map<std::string, std::string> environment(
      const std::map<std::string, std::string>& requested) const;
  void exited(const std::string& submission_id, int status);
  void wait_for_group(const std::string& submission_id);
  void finish(const std::string& submission_id, int status);
  void kill(const std::string& submission_id);

  net::Loop& loop_;
  Reaper& reaper_;
  Options options_;
  Report report_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, proto::SubmittedJob> ended_;           // not acknowledged
  std::map<std::string, std::unique_ptr<JobOutput>> outputs_;  // running and ended jobs have one
  // Outputs whose log was dropped; each is kept until its last writer ends.
  std::vector<std::unique_ptr<JobOutput>> forgotten_;
};

}  // namespace rt::node
