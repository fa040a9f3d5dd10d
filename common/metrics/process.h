// What the kernel says of a process (/proc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rt::metrics {

struct ProcessFigures {
  double cpu_seconds = 0, started_s = 0;  // started_s: since the machine's start
  int threads = 0;
  int64_t rss = 0, shared = 0;  // bytes; shared: of rss, what others may have, too
};
// Nothing: it has ended.
std::optional<ProcessFigures> process_figures(int pid);

// What costs more to find out: pages that are this process's alone, and its open descriptors. Zeros
// for one that is gone.
struct ProcessDetail {
  int64_t unique_bytes = 0;
  int open_files = 0;
};
ProcessDetail process_detail(int pid);

// A file of /proc, up to `most` bytes; empty when it is not there.
std::string read_proc(const std::string& path, size_t most = 1 << 20);

}  // namespace rt::metrics
