// A process that outlives this one for a moment, to kill what a job's shell has started.
//
// The shell of a job is killed with the node-manager (see spawn_process()), its children are not:
// a node-manager that is killed would leave programs behind that nobody knows of. The guard waits
// for the end of a pipe whose other end this process holds.
#pragma once

#include <memory>
#include <utility>

#include "common/base/fd.h"
#include "daemons/node_manager/process/process.h"

namespace rt::node {

class JobGuard {
 public:
  // Starts a guard of the process group that the process with the id `leader` leads or is about to.
  static Result<std::unique_ptr<JobGuard>> start(int leader);
  // Ends the guard, which then does nothing.
  ~JobGuard();
  JobGuard(const JobGuard&) = delete;
  JobGuard& operator=(const JobGuard&) = delete;

 private:
  JobGuard(const ProcessId& process, Fd held_end)
      : process_(process), held_end_(std::move(held_end)) {}

  const ProcessId process_;
  Fd held_end_;
};

}  // namespace rt::node
