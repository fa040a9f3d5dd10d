// The processes that this node-manager starts: workers, and the entrypoints of submitted jobs; with
// their logs and the reports about them. Threads: the loop's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "daemons/node_manager/process/job_processes.h"
#include "daemons/node_manager/process/log_monitor.h"
#include "daemons/node_manager/process/reaper.h"
#include "daemons/node_manager/process/worker_starter.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/options.h"

namespace rt::node {

class Processes {
 public:
  // Starts the first fork server at once: the interpreter takes longer than everything else.
  Processes(net::Loop& loop, const NodeManagerOptions& options);

  // Both are used while the loop runs. To be called once, before the core asks for a worker.
  void connect(CoreDriver& driver, HeadLink& head);

  Reaper& reaper() { return reaper_; }
  WorkerStarter& starter() { return starter_; }
  // These are there after connect().
  LogMonitor& logs() { return *logs_; }
  JobProcesses& jobs() { return *jobs_; }

  // Takes the job's resources and starts its entrypoint. Fails as NodeCore::hold_for_job() and
  // JobProcesses::start() do.
  Status start_job(const proto::SubmittedJob& job, std::map<std::string, std::string> env);

 private:
  WorkerStarterEvents starter_events();

  net::Loop& loop_;
  const NodeManagerOptions& options_;
  CoreDriver* driver_ = nullptr;  // set by connect(), as the rest
  Reaper reaper_;
  WorkerStarter starter_;
  std::unique_ptr<LogMonitor> logs_;
  std::unique_ptr<JobProcesses> jobs_;
};

}  // namespace rt::node
