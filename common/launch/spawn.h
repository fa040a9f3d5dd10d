// Starting one daemon, and waiting until several say READY. posix_spawn only: a driver may be
// large, and fork() copies its page tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/status.h"
#include "common/launch/internal.h"
#include "common/launch/launch.h"

namespace rt::launch {

// The child sees `inherit[i]` as this + i, the terminal's descriptors replaced, and nothing else
// that this process has open.
inline constexpr int kFirstInheritedFd = 3;

struct SpawnRequest {
  std::string name, executable;
  std::vector<std::string> arguments;  // without argv[0]
  std::vector<int> inherit;            // borrowed; may be close-on-exec
  std::map<std::string, std::optional<std::string>>
      environment;          // changes to ours; nullopt removes
  std::string output_file;  // stdout and stderr, appended
};
Result<StartedProcess> spawn(const SpawnRequest& request);

// In clock ticks since boot, as in /proc/PID/stat; 0 when there is no such process or it is a
// zombie.
uint64_t process_start_time(int pid);
// The same, a zombie's too: which process a number means as long as nobody has reaped it.
uint64_t unreaped_start_time(int pid);

// systemd's notification protocol, for the daemons we start ourselves. The kernel names the sender
// of each message.
class ReadySocket {
 public:
  static Result<ReadySocket> create();
  const std::string& name() const { return name_; }  // for $NOTIFY_SOCKET
  // Until every process has said READY. kTimeout or kUnavailable; `culprit` is then the process
  // that ended or stayed silent.
  Status wait(const std::vector<StartedProcess>& processes, int64_t timeout_us,
              std::string* culprit);

 private:
  Fd fd_;
  std::string name_;
};

// "exited with code 1", "was killed by signal 9 (Killed)"; empty when it still runs. Reaps it when
// it is our child.
std::string how_it_ended(int pid);

}  // namespace rt::launch
