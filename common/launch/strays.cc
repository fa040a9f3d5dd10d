// Finds daemons whose record was removed while they ran, as cleaners of /tmp do.
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/launch/launch.h"
#include "common/launch/spawn.h"

namespace rt::launch {
namespace {

namespace fs = std::filesystem;

// The words of a command line, which are separated by NUL.
std::vector<std::string> words_of(int pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(std::move(word));
  return words;
}

bool is_own(int pid) {
  struct stat info{};
  return stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0 && info.st_uid == geteuid();
}

// The value of an option that the launcher gives as a word of its own, or "".
std::string value_of(const std::vector<std::string>& words, std::string_view option) {
  auto at = std::find(words.begin(), words.end(), option);
  return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
}

}  // namespace

std::vector<StartedProcess> started_daemons(const std::string& root) {
  static constexpr std::array<std::string_view, 3> kDaemons{"ray-node-manager", "ray-object-store",
                                                            "ray-head"};
  std::vector<StartedProcess> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || !is_own(pid)) continue;
    // Read before the command line, so that both are of the same process.
    const uint64_t start_time = process_start_time(pid);
    const std::vector<std::string> words = words_of(pid);
    if (start_time == 0 || words.empty()) continue;
    const std::string name = fs::path(words[0]).filename();
    // Only the launcher passes --starter-fd: daemons that a service manager runs, and those that
    // end with the program that started them, are not its business.
    if (std::find(kDaemons.begin(), kDaemons.end(), name) == kDaemons.end() ||
        value_of(words, "--starter-fd").empty() ||
        fs::path(value_of(words, "--session-dir")).parent_path() != fs::path(root))
      continue;
    found.push_back({name, pid, start_time, {}});
  }
  return found;
}

}  // namespace rt::launch
