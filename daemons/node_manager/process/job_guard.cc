#include "daemons/node_manager/process/job_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace rt::node {

Result<JobGuard> JobGuard::start(const ProcessId& leader) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("cannot make a pipe for a job", errno);
  Fd waits(ends[0]);
  JobGuard guard;
  guard.held_end_ = Fd(ends[1]);
  SpawnOptions spawn;
  spawn.argv = {"/bin/sh", "-c",
                "trap '' HUP INT TERM; read -r nothing <&3; kill -s KILL -- \"-$1\"",
                "ray-job-guard", std::to_string(leader.pid)};
  spawn.inherit_fd = waits.get();
  spawn.new_session = spawn.outlives_parent = true;
  RT_ASSIGN(guard.process_, spawn_process(spawn));
  return guard;
}

JobGuard::JobGuard(JobGuard&& other) noexcept
    : process_(std::exchange(other.process_, {})), held_end_(std::move(other.held_end_)) {}

JobGuard& JobGuard::operator=(JobGuard&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(held_end_, other.held_end_);
  return *this;
}

JobGuard::~JobGuard() {
  if (process_.pid == 0 || !signal_process(process_, SIGKILL)) return;
  while (::waitpid(process_.pid, nullptr, 0) < 0 && errno == EINTR) {}
}

}  // namespace rt::node
