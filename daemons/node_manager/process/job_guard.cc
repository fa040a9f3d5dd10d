#include "daemons/node_manager/process/job_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace rt::node {

Result<std::unique_ptr<JobGuard>> JobGuard::start(int leader) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("cannot make a pipe for a job", errno);
  Fd waits(ends[0]), held(ends[1]);
  SpawnOptions spawn;
  spawn.argv = {"/bin/sh", "-c",
                "trap '' HUP INT TERM; read -r nothing <&3; kill -s KILL -- \"-$1\"",
                "ray-job-guard", std::to_string(leader)};
  spawn.inherit_fd = waits.get();
  spawn.new_session = spawn.outlives_parent = true;
  RT_ASSIGN(ProcessId process, spawn_process(spawn));
  return std::unique_ptr<JobGuard>(new JobGuard(process, std::move(held)));
}

JobGuard::~JobGuard() {
  if (!signal_process(process_, SIGKILL)) return;
  while (::waitpid(process_.pid, nullptr, 0) < 0 && errno == EINTR) {}
}

}  // namespace rt::node
