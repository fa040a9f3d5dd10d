// A process that outlives this one for a moment, to kill what a job's shell has started.
//
// The shell of a job is killed with the node-manager (see spawn_process()), its children are not:
// a node-manager that is killed would leave programs behind that nobody knows of. The guard waits
// for the end of a pipe whose other end this process holds.
#pragma once

#include "common/base/fd.h"
#include "daemons/node_manager/process/process.h"

namespace rt::node {

class JobGuard {
 public:
  JobGuard() = default;
  // Starts a guard of the process group that `leader` leads.
  static Result<JobGuard> start(const ProcessId& leader);
  // Ends the guard, which then does nothing.
  ~JobGuard();
  JobGuard(JobGuard&& other) noexcept;
  JobGuard& operator=(JobGuard&& other) noexcept;

 private:
  ProcessId process_;
  Fd held_end_;
};

}  // namespace rt::node
