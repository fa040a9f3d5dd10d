#include "common/base/readable.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <ctime>
#include <iterator>

namespace rt {

std::string binary_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}B", bytes) : fmt::format("{:.2f}{}", bytes, kUnits[unit]);
}

std::string amount(double value) {
  std::string text = fmt::format("{:.4f}", value);
  while (text.ends_with('0') && !text.ends_with(".0")) text.pop_back();
  return text;
}

std::string local_time(int64_t wall_ms) {
  return wall_ms <= 0 ? ""
                      : fmt::format("{:%Y-%m-%d %H:%M:%S}",
                                    fmt::localtime(static_cast<std::time_t>(wall_ms / 1000)));
}

std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  const size_t half = most / 2;
  return fmt::format("{}\n[... {} bytes left out ...]\n{}", text.substr(0, half),
                     text.size() - 2 * half, text.substr(text.size() - half));
}

std::string process_name(const WorkerId& id, int pid) {
  const JobId job = job_of_driver(id);
  return fmt::format(
      "{}{}", job.is_nil() ? "worker " + id.hex().substr(0, 16) : "the driver of job " + job.hex(),
      pid > 0 ? fmt::format(" (pid {})", pid) : "");
}

}  // namespace rt
