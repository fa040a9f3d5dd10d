#include "launch/node/starter_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "launch/node/proc.h"

namespace rt::launch {
namespace {

namespace fs = std::filesystem;

// The path below the session directory. It lies among the sockets, with which it is removed.
constexpr const char* kLine = "/sockets/starting";

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

}  // namespace

Result<StarterLine> StarterLine::create(const std::string& session_dir) {
  StarterLine line;
  line.path_ = session_dir + kLine;
  unlink(line.path_.c_str());
  if (mkfifo(line.path_.c_str(), 0600) != 0) return errno_error("cannot make " + line.path_, errno);
  // The ends are opened in this order and without blocking, because a FIFO without a reader cannot
  // be opened for writing.
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
  for (const LiveProcess& process : live_processes()) {
    if (!has_open(process.directory, line)) continue;
    const std::string daemon = daemon_of(command_of(process));
    found.push_back({daemon.empty() ? kStarter : daemon, process.pid, process.start_time, {}});
  }
  return found;
}

}  // namespace rt::launch
