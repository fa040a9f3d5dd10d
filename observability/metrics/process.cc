#include "observability/metrics/process.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "common/base/proc.h"

namespace rt::metrics {

std::optional<ProcessFigures> process_figures(int pid) {
  const auto stat = proc_stat(pid);
  if (!stat) return std::nullopt;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  ProcessFigures figures;
  figures.cpu_seconds = static_cast<double>(stat->user_ticks + stat->system_ticks) / ticks;
  figures.threads = stat->threads;
  figures.started_s = static_cast<double>(stat->start_ticks) / ticks;
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
