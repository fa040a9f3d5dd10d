// Names of log files of a session.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace rt {

// Of a worker's stdout or stderr. `pid`: its number, or what stands for it until it is known.
inline std::string worker_log_name(std::string_view worker_hex, std::string_view pid, bool is_stderr) {
  return fmt::format("worker-{}-ffffffff-{}.{}", worker_hex, pid, is_stderr ? "err" : "out");
}

}  // namespace rt
