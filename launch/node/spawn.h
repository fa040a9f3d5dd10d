// Starts a daemon, and waits until several are READY. Uses posix_spawn only: a driver may be large,
// and fork() copies its page tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/status.h"
#include "launch/node/internal.h"
#include "launch/node/launch.h"

namespace rt::launch {

// The child sees `inherit[i]` as descriptor kFirstInheritedFd + i, new descriptors in place of the
// terminal's, and nothing else that this process has open.
inline constexpr int kFirstInheritedFd = 3;

struct SpawnRequest {
  std::string name, executable;
  std::vector<std::string> arguments;  // Without argv[0].
  std::vector<int> inherit;            // Not taken; may be close-on-exec.
  // Changes to the environment of this process; nullopt removes a variable.
  std::map<std::string, std::optional<std::string>> environment;
  std::string output_file;  // stdout and stderr are appended to this file.
};
Result<StartedProcess> spawn(const SpawnRequest& request);

// The start time of a process in clock ticks since boot, as in /proc/PID/stat; 0 when there is no
// such process or it is a zombie.
uint64_t process_start_time(int pid);
// The same, but also for a zombie: identifies a process until it is reaped.
uint64_t unreaped_start_time(int pid);

// The receiving side of systemd's notification protocol, for daemons that this process starts. The
// kernel vouches for the sender of each message.
class ReadySocket {
 public:
  static Result<ReadySocket> create();
  const std::string& name() const { return name_; }  // The value of $NOTIFY_SOCKET.
  // Waits until every process has said READY. On kTimeout or kUnavailable `culprit` names the
  // process that stayed silent or ended.
  Status wait(const std::vector<StartedProcess>& processes, int64_t timeout_us,
              std::string* culprit);

 private:
  Fd fd_;
  std::string name_;
};

// "exited with code 1", "was killed by signal 9 (Killed)"; empty when the process still runs. Reaps
// a child.
std::string reap_and_describe(int pid);

}  // namespace rt::launch
