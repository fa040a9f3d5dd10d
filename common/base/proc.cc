#include "common/base/proc.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace rt {

// Reads in small pieces, because a buffer for the largest file would stay with the process.
std::string read_proc(const std::string& path, size_t most) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char piece[4096];
  while (text.size() < most) {
    const ssize_t count = ::read(fd, piece, std::min(sizeof piece, most - text.size()));
    if (count <= 0) break;
    text.append(piece, static_cast<size_t>(count));
  }
  ::close(fd);
  return text;
}

std::optional<ProcStat> proc_stat(int pid) {
  if (pid <= 0) return std::nullopt;
  const std::string text = read_proc(fmt::format("/proc/{}/stat", pid), 4096);
  // The name in parentheses may hold anything, so that fields are counted from behind it. The state
  // is the third.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return std::nullopt;
  ProcStat stat;
  stat.state = text[name_end + 2];
  constexpr size_t kFirst = 4, kLast = 22;
  std::array<int64_t, kLast + 1> fields{};
  std::string_view rest = std::string_view(text).substr(name_end + 3);
  for (size_t number = kFirst; number <= kLast; ++number) {
    if (rest.empty()) return std::nullopt;
    rest.remove_prefix(1);  // This removes the blank before the field.
    auto [end, error] = std::from_chars(rest.begin(), rest.end(), fields[number]);
    if (error == std::errc::invalid_argument) return std::nullopt;
    rest.remove_prefix(static_cast<size_t>(end - rest.begin()));
  }
  stat.flags = static_cast<uint64_t>(fields[9]);
  stat.user_ticks = static_cast<uint64_t>(fields[14]);
  stat.system_ticks = static_cast<uint64_t>(fields[15]);
  stat.threads = static_cast<int>(fields[20]);
  stat.start_ticks = static_cast<uint64_t>(fields[22]);
  return stat;
}

}  // namespace rt
