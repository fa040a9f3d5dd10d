#include "driver_output.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

namespace ray::internal {
namespace {

using rt::worker::DriverLine;
using std::chrono::milliseconds;
constexpr milliseconds kSettle{150};  // Three batches of log_batch_interval_ms.
constexpr milliseconds kSettleAtMost{1000};

bool flag_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value && std::strcmp(value, "0") != 0 && std::strcmp(value, "false") != 0;
}

std::string prefix_of(const DriverLine& line) {
  std::string text;
  if (line.is_notice) {
    text = fmt::format("({})", line.name.empty() ? "raylet" : line.name);
  } else {
    std::string ip = line.ip.empty() ? "" : ", ip=" + line.ip;
    text = line.name.empty() ? fmt::format("(pid={}{})", line.pid, ip)
                             : fmt::format("({} pid={}{})", line.name, line.pid, ip);
  }
  const char* colour = std::getenv("RAY_COLOR_PREFIX");
  return colour && std::strcmp(colour, "0") == 0 ? text + " " : "\x1b[36m" + text + "\x1b[0m ";
}

// The time at which a worker of this machine last wrote to its log files.
std::filesystem::file_time_type last_output(const std::string& session_dir) {
  auto latest = std::filesystem::file_time_type::min();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(session_dir + "/logs", error)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with("worker-") || (!name.ends_with(".out") && !name.ends_with(".err")))
      continue;
    std::error_code ignored;
    if (entry.file_size(ignored) > 0 && !ignored)
      latest = std::max(latest, entry.last_write_time(ignored));
  }
  return latest;
}

}  // namespace

std::function<void(const std::vector<DriverLine>&)> worker_output_printer() {
  const bool prefixed = !flag_set("RAY_DISABLE_WORKER_LOG_PREFIX");
  return [prefixed](const std::vector<DriverLine>& lines) {
    for (const auto& line : lines) {
      std::FILE* out = line.is_stderr ? stderr : stdout;
      std::string text = ((prefixed && !line.is_error) || line.is_notice ? prefix_of(line) : "") +
                         line.text + "\n";
      std::fwrite(text.data(), 1, text.size(), out);
    }
    std::fflush(stdout);
  };
}

void settle_worker_output(const rt::worker::Worker& worker) {
  auto end = std::chrono::steady_clock::now() + kSettleAtMost;
  while (std::chrono::steady_clock::now() < end &&
         std::filesystem::file_time_type::clock::now() - last_output(worker.context().session_dir) <
             kSettle) {
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace ray::internal
