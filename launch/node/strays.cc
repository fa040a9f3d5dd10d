// Finds, in /proc, the daemons that the launcher started below a temp root: `rayctl stop` also ends
// those whose session files a cleaner of /tmp has removed.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "launch/node/launch.h"
#include "launch/node/proc.h"

namespace rt::launch {
namespace {

namespace fs = std::filesystem;

bool is_own(const LiveProcess& process) {
  struct stat info{};
  return stat(process.directory.c_str(), &info) == 0 && info.st_uid == geteuid();
}

// Returns the value of an option that the launcher gives as the words `--option value`, or "".
std::string value_of(const std::vector<std::string>& command, std::string_view option) {
  auto at = std::find(command.begin(), command.end(), option);
  return at == command.end() || at + 1 == command.end() ? "" : *(at + 1);
}

}  // namespace

std::vector<StartedProcess> started_daemons(const std::string& root) {
  std::vector<StartedProcess> found;
  for (const LiveProcess& process : live_processes()) {
    if (!is_own(process)) continue;
    const std::vector<std::string> command = command_of(process);
    const std::string name = daemon_of(command);
    // Only the launcher passes --starter-fd: daemons that a service manager runs, and those that
    // end with the program that started them, are not its business.
    if (name.empty() || value_of(command, "--starter-fd").empty() ||
        fs::path(value_of(command, "--session-dir")).parent_path() != fs::path(root))
      continue;
    found.push_back({name, process.pid, process.start_time, {}});
  }
  return found;
}

}  // namespace rt::launch
