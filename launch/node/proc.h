// Private to launch/node: finds processes by what /proc says of them. Those that end meanwhile
// are left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rt::launch {

struct LiveProcess {
  int pid;
  // The start time is read first: if another process gets this id afterwards, the times differ and
  // nobody signals that process.
  uint64_t start_time;
  std::filesystem::path directory;  // /proc/PID
};
// All processes that can be seen, without this one.
std::vector<LiveProcess> live_processes();
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& directory);
// The words of its command line.
std::vector<std::string> command_of(const LiveProcess& process);
// The name of the daemon that this command line starts, or "". The first word says it, because the
// program may be a link to a file of another name.
std::string daemon_of(const std::vector<std::string>& command);

}  // namespace rt::launch
