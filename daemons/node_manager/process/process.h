// Starting and signalling processes so that none is left behind and none is mistaken for another:
// children die with this process (parent-death signal), process ids are used together with their
// start time.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace rt::node {

// A process id that stays unambiguous when ids are reused. start_time: field 22 of /proc/PID/stat,
// 0 = unknown.
struct ProcessId {
  int pid = 0;
  uint64_t start_time = 0;
};

// 0 when there is no such process.
uint64_t process_start_time(int pid);

// On its way out, or gone: its descriptors may be closed before it can be reaped.
bool process_is_ending(int pid);

struct SpawnOptions {
  std::vector<std::string> argv;           // argv[0] is an absolute path, or looked up in PATH
  std::map<std::string, std::string> env;  // added to (or replacing) this process's environment
  std::string stdout_path, stderr_path;  // appended to; "%p" becomes the child's process id. Equal
                                         // paths share one descriptor
  int output_fd = -1;                    // becomes descriptors 1 and 2, in place of the paths
  std::string cwd;
  int inherit_fd = -1;  // becomes descriptor 3
  bool new_session =
      false;  // its own session and process group, for signalling everything it starts
};

// Forks and executes. Call only from a thread that lives as long as the children shall: they get
// SIGKILL when it ends. kIo names what failed, also for the part after the fork.
Result<ProcessId> spawn_process(const SpawnOptions& options);

// Sends `signal` unless the id now belongs to another process. False: it is gone.
bool signal_process(const ProcessId& process, int signal);
// To every process of the group that a new_session child leads; only while the leader has not been
// reaped.
void signal_group(const ProcessId& leader, int signal);
bool group_exists(
    const ProcessId& leader);  // whether the group has a process, its leader or another

// Orphaned descendants become this process's children, to be reaped by it.
void become_subreaper();

// The last lines of a text: at most `max_lines`, without worker markers (":task_name:f"). Of a
// file: also at most `max_bytes`; empty when it cannot be read.
std::string text_tail(std::string_view text, int max_lines);
std::string file_tail(const std::string& path, int max_lines = 20, size_t max_bytes = 8192);

}  // namespace rt::node
