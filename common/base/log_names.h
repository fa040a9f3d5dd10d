// Names of log files of a session.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace rt {

// Of a worker's stdout or stderr. `pid`: its number, or what stands for it until it is known.
inline std::string worker_log_name(std::string_view worker_hex, std::string_view pid, bool is_stderr) {
  return fmt::format("worker-{}-ffffffff-{}.{}", worker_hex, pid, is_stderr ? "err" : "out");
}

// The process whose stdout or stderr it is; 0: it is not a worker's.
inline int64_t worker_log_pid(std::string_view name) {
  size_t dash = name.rfind('-');
  if (!name.starts_with("worker-") || dash == std::string_view::npos) return 0;
  int64_t pid = 0;
  std::from_chars(name.data() + dash + 1, name.data() + name.size(), pid);
  return pid;
}

}  // namespace rt
