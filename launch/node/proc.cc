#include "launch/node/proc.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <optional>

#include "launch/node/spawn.h"

namespace rt::launch {
namespace fs = std::filesystem;

namespace {

std::optional<int> pid_of(const fs::path& process) {
  const std::string name = process.filename();
  int pid = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

}  // namespace

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

std::vector<LiveProcess> live_processes() {
  std::vector<LiveProcess> found;
  for (fs::path& directory : entries_of("/proc")) {
    const auto pid = pid_of(directory);
    if (!pid || *pid == getpid()) continue;
    if (const uint64_t start_time = process_start_time(*pid); start_time != 0)
      found.push_back({*pid, start_time, std::move(directory)});
  }
  return found;
}

std::vector<std::string> command_of(const LiveProcess& process) {
  std::ifstream file(process.directory / "cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(std::move(word));
  return words;
}

std::string daemon_of(const std::vector<std::string>& command) {
  if (command.empty()) return "";
  const std::string program = fs::path(command[0]).filename();
  for (const char* daemon : {"ray-head", "ray-node-manager", "ray-object-store"}) {
    if (program == daemon) return daemon;
  }
  return "";
}

}  // namespace rt::launch
