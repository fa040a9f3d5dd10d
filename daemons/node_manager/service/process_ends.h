// Ends the processes of a node that stops: SIGTERM to all of them, SIGKILL to those that are left
// after the time they get. Threads: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "common/net/alarm.h"
#include "daemons/node_manager/process/job_processes.h"
#include "daemons/node_manager/process/worker_starter.h"

namespace rt::node {

class ProcessEnds {
 public:
  // `starter` and `jobs` outlive this object. `on_ended` is called once after wait(), when no
  // process is left, or when some can neither be killed nor reaped: those die with this process.
  ProcessEnds(net::Loop& loop, WorkerStarter& starter, JobProcesses& jobs,
              std::function<void()> on_ended)
      : starter_(starter),
        jobs_(jobs),
        on_ended_(std::move(on_ended)),
        alarm_(loop, [this] { look(); }) {}

  void ask_all();
  // Waits for those that were asked, for up to `grace_us`.
  void wait(int64_t grace_us);

 private:
  void look();

  WorkerStarter& starter_;
  JobProcesses& jobs_;
  const std::function<void()> on_ended_;
  net::Alarm alarm_;
  int64_t deadline_us_ = 0;
  bool killed_ = false;
};

}  // namespace rt::node
