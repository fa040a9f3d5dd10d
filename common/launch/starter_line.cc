#include "common/launch/starter_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "common/launch/spawn.h"

namespace rt::launch {
namespace {

namespace fs = std::filesystem;

// Below the session directory, among the sockets, with which it is removed.
constexpr const char* kLine = "/sockets/starting";

// Entries that vanish meanwhile are no error.
std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

// Whether the process has the file `line` open. Links to other files are not followed.
bool has_open(const fs::path& process, const struct stat& line) {
  for (const fs::path& descriptor : entries_of(process / "fd")) {
    std::error_code gone;
    struct stat info;
    if (fs::read_symlink(descriptor, gone).string().ends_with(kLine) &&
        stat(descriptor.c_str(), &info) == 0 && info.st_dev == line.st_dev &&
        info.st_ino == line.st_ino)
      return true;
  }
  return false;
}

std::optional<int> pid_of(const fs::path& process) {
  const std::string name = process.filename();
  int pid = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

std::string role_of(const fs::path& process) {
  // The first argument, because the program may be a link to a file of another name.
  std::ifstream file(process / "cmdline");
  std::string path;
  std::getline(file, path, '\0');
  const std::string program = fs::path(path).filename();
  for (const char* daemon : {"ray-head", "ray-node-manager", "ray-object-store"}) {
    if (program == daemon) return daemon;
  }
  return kStarter;
}

}  // namespace

Result<StarterLine> StarterLine::create(const std::string& session_dir) {
  StarterLine line;
  line.path_ = session_dir + kLine;
  unlink(line.path_.c_str());
  if (mkfifo(line.path_.c_str(), 0600) != 0) return errno_error("cannot make " + line.path_, errno);
  // In this order and without blocking: a FIFO without a reader cannot be opened for writing.
  line.reading_.reset(open(line.path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  line.writing_.reset(open(line.path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!line.reading_.valid() || !line.writing_.valid())
    return errno_error("cannot open " + line.path_, errno);
  return line;
}

Status StarterLine::release() {
  if (write(writing_.get(), "", 1) != 1)
    return errno_error("cannot hand the daemons over to the node's record", errno);
  unlink(path_.c_str());
  writing_.reset();
  return {};
}

std::vector<StartedProcess> StarterLine::holders(const std::string& session_dir) {
  std::vector<StartedProcess> found;
  struct stat line;
  if (lstat((session_dir + kLine).c_str(), &line) != 0 || !S_ISFIFO(line.st_mode)) return found;
  for (const fs::path& process : entries_of("/proc")) {
    auto pid = pid_of(process);
    if (!pid || *pid == getpid()) continue;
    // Read before the descriptors: if another process gets this id meanwhile, the times differ and
    // nobody signals it.
    uint64_t start_time = process_start_time(*pid);
    if (start_time != 0 && has_open(process, line))
      found.push_back({role_of(process), *pid, start_time, {}});
  }
  return found;
}

}  // namespace rt::launch
