// Reads /proc, which tells of processes and of the machine. The functions may be called from any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rt {

// The first `most` bytes of a file of /proc; empty if it cannot be read.
std::string read_proc(const std::string& path, size_t most = 1 << 20);

// Fields of /proc/PID/stat, as proc(5) has them.
struct ProcStat {
  char state = 0;  // 'Z' for a process that has ended and was not reaped
  uint64_t flags = 0;
  // In clock ticks, of which there are sysconf(_SC_CLK_TCK) in a second.
  uint64_t user_ticks = 0, system_ticks = 0;
  uint64_t start_ticks = 0;  // Since the boot of the machine.
  int threads = 0;
};
// Returns nullopt if there is no such process.
std::optional<ProcStat> proc_stat(int pid);

}  // namespace rt
