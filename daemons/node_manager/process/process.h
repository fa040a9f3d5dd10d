// Starts and signals processes such that none is left behind and none is mistaken for another:
// children die with this process (parent-death signal), and a process id is only used together
// with the start time of its process.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace rt::node {

// A process id that stays unambiguous when the operating system reuses ids. `start_time` is field
// 22 of /proc/PID/stat; 0 means that it is unknown.
struct ProcessId {
  int pid = 0;
  uint64_t start_time = 0;
};

// Returns 0 if there is no such process.
uint64_t process_start_time(int pid);

// Returns true if the process is exiting or gone. An exiting process closes its file descriptors
// some time before it can be reaped.
bool process_is_ending(int pid);

struct SpawnOptions {
  std::vector<std::string> argv;           // argv[0] is an absolute path, or looked up in PATH
  std::map<std::string, std::string> env;  // added to (or replacing) this process's environment
  // Files the output is appended to; empty: /dev/null. "%p" is replaced by the child's process id.
  // Equal paths share one descriptor.
  std::string stdout_path, stderr_path;
  int output_fd = -1;   // becomes descriptors 1 and 2 and replaces the paths; -1: none
  std::string cwd;      // empty: that of this process
  int inherit_fd = -1;  // becomes descriptor 3; -1: none
  // Gives the child a session of its own, not only a process group. Either way signal_group()
  // reaches everything that the child starts in its group.
  bool new_session = false;
  // The child is not killed with this process, so it has to end by itself.
  bool outlives_parent = false;
  // Called with the child's process id while the child waits to execute the program. The child ends
  // without doing so when the call fails, whose error is then that of the start, or when this
  // process ends meanwhile.
  std::function<Status(int pid)> before_exec;
};

// Forks and executes a program, and returns once it has been executed. The child gets SIGKILL when
// the calling thread ends, so call this only from a thread that lives as long as the children
// should, or set `outlives_parent`. Returns an error that names the failed step, also for steps
// after the fork.
Result<ProcessId> spawn_process(const SpawnOptions& options);

// Sends `signal` to the process. Returns false if it is gone, also if its id has been reused.
bool signal_process(const ProcessId& process, int signal);
// Sends `signal` to every process of the group that `leader` leads. Call this only until the
// leader is reaped or while the group is known to have members: afterwards the id may be reused.
void signal_group(const ProcessId& leader, int signal);
// Returns true if the group has a process, be it the leader or another one.
bool group_exists(const ProcessId& leader);

// Makes orphaned descendants children of this process, which then has to reap them.
void become_subreaper();

// Returns the last lines of a text: at most `max_lines`, without worker markers (":task_name:f"),
// and with U+FFFD in place of what is not UTF-8, because the text goes into messages to people.
// file_tail() reads at most the last `max_bytes` of a file, and returns an empty string if the
// file cannot be read.
std::string text_tail(std::string_view text, int max_lines);
std::string file_tail(const std::string& path, int max_lines = 20, size_t max_bytes = 8192);

}  // namespace rt::node
