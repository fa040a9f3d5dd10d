#include "observability/metrics/process.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace rt::metrics {

// Reads in small pieces, because a buffer for the largest file would stay with the process.
std::string read_proc(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char piece[4096];
  while (file && text.size() < most) {
    file.read(piece, static_cast<std::streamsize>(std::min(sizeof piece, most - text.size())));
    text.append(piece, static_cast<size_t>(file.gcount()));
  }
  return text;
}

std::optional<ProcessFigures> process_figures(int pid) {
  std::string stat = read_proc(fmt::format("/proc/{}/stat", pid));
  size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream words(stat.substr(name_end + 2));
  std::array<double, 20> fields{};
  std::string state;
  words >> state;
  for (double& field : fields) words >> field;
  if (!words) return std::nullopt;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  ProcessFigures figures;
  figures.cpu_seconds = (fields[10] + fields[11]) / ticks;  // utime, stime
  figures.threads = static_cast<int>(fields[16]);
  figures.started_s = fields[18] / ticks;
  int64_t total = 0, resident = 0, shared = 0;
  std::istringstream(read_proc(fmt::format("/proc/{}/statm", pid))) >> total >> resident >> shared;
  figures.rss = resident * ::getpagesize();
  figures.shared = shared * ::getpagesize();
  return figures;
}

ProcessDetail process_detail(int pid) {
  ProcessDetail detail;
  std::istringstream lines(read_proc(fmt::format("/proc/{}/smaps_rollup", pid)));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kib = 0;
    words >> name >> kib;
    if (name.starts_with("Private_")) detail.unique_bytes += kib * 1024;
  }
  std::error_code gone;
  for (std::filesystem::directory_iterator it(fmt::format("/proc/{}/fd", pid), gone), end;
       !gone && it != end; it.increment(gone))
    ++detail.open_files;
  return detail;
}

}  // namespace rt::metrics
