#include "driver_output.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ray::internal {
namespace {

using rt::worker::DriverLine;

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

}  // namespace ray::internal
