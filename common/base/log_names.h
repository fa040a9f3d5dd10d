// The names of log files in a session directory.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace rt {

// The log of a worker's stdout or stderr. `pid` is the process's number, or a placeholder until it
// is known.
inline std::string worker_log_name(std::string_view worker_hex, std::string_view pid,
                                   bool is_stderr) {
  return fmt::format("worker-{}-ffffffff-{}.{}", worker_hex, pid, is_stderr ? "err" : "out");
}

// Returns the process id in the name of a worker's log; 0 for any other name.
inline int64_t worker_log_pid(std::string_view name) {
  size_t dash = name.rfind('-');
  if (!name.starts_with("worker-") || dash == std::string_view::npos) return 0;
  int64_t pid = 0;
  std::from_chars(name.data() + dash + 1, name.data() + name.size(), pid);
  return pid;
}

// The log of a submitted job's entrypoint.
inline std::string job_log_name(std::string_view submission_id) {
  return fmt::format("job-driver-{}.log", submission_id);
}

// Returns the submission id in the name of a job's log; empty for any other name.
inline std::string_view job_of_log(std::string_view name) {
  constexpr std::string_view kPrefix = "job-driver-", kSuffix = ".log";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
      name.size() < kPrefix.size() + kSuffix.size())
    return {};
  return name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
}

// Returns the name that a rotated log (NAME.1, NAME.2, ...) had before its rotation; empty for any
// other name.
inline std::string_view rotated_from(std::string_view name) {
  size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size() || name[digits] != '.')
    return {};
  return name.substr(0, digits);
}

// Returns the text that stands for output that rotation has removed. `inside` says that output
// before the gap was read, which may have ended in the middle of a line.
inline std::string removed_note(int64_t bytes, bool inside) {
  return fmt::format(
      "{}[{} bytes were removed here by log rotation; RAY_ROTATION_MAX_BYTES and "
      "RAY_ROTATION_BACKUP_COUNT set how much is kept]\n",
      inside ? "\n" : "", bytes);
}

}  // namespace rt
