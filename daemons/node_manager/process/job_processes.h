// Drivers of submitted jobs: each a shell in its own session, its output in
// logs/job-driver-<submission id>.log, which is rotated. Reports every change of a job's status;
// what runs when this object goes is killed, and nobody reads the rest of its output.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/net/loop.h"
#include "common/proto/head.pb.h"
#include "daemons/node_manager/process/job_output.h"
#include "daemons/node_manager/process/process.h"
#include "daemons/node_manager/process/reaper.h"

namespace rt::node {

class JobProcesses {
 public:
  struct Options {
    std::string session_dir;
    std::string python,
        python_path;  // appended to PATH and PYTHONPATH so that `python prog.py` finds `ray`
    std::string head_address;  // RAY_ADDRESS
    size_t max_log_chunk = 262144;
  };
  using Report = std::function<void(const proto::SubmittedJob&)>;

  JobProcesses(net::Loop& loop, Reaper& reaper, Options options, Report report);
  ~JobProcesses();

  // kAlreadyExists, kInvalid (RAY_ROTATION_MAX_BYTES of its environment, for one), kUnsupported, or
  // why its process cannot be started. RUNNING is reported before it returns.
  Status start(const proto::SubmittedJob& job, const std::map<std::string, std::string>& env);
  // SIGTERM to the whole group, SIGKILL after 3 s (RAY_JOB_STOP_SIGNAL, RAY_JOB_STOP_WAIT_TIME_S of
  // its environment). False: it is not running.
  bool stop(const std::string& submission_id);
  void stop_all(int signal);
  bool running() const { return !jobs_.empty(); }
  struct Chunk {
    std::string data;
    int64_t next_offset = 0;
    int64_t size = 0;  // of all that was written so far
  };
  // Across the pieces of its log. Where rotation has removed what was asked for, `data` begins with
  // a line that says how much.
  Result<Chunk> read_log(const std::string& submission_id, int64_t offset, int64_t max_bytes) const;
  // Of a job that has ended here; what still writes to it goes on unread.
  void remove_log(const std::string& submission_id);
  // The log that has this file name; null: none here has. Gone with the next event.
  const RotatedLog* log_of_file(const std::string& name) const;

 private:
  struct Job {
    proto::SubmittedJob info;
    ProcessId process;
    bool makes_environment = false;  // a program of ours comes before the entrypoint
    bool stopping = false;
    bool killed = false;       // it had its time to stop
    std::optional<int> ended;  // of one that is stopping: the shell's status, while what it started
                               // still cleans up
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
  std::map<std::string, std::unique_ptr<JobOutput>> outputs_;  // of jobs that run and that have run
  std::vector<std::unique_ptr<JobOutput>> forgotten_;  // without a log, until the last writer ends
};

}  // namespace rt::node
