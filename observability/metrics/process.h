// Figures of a process from /proc. The functions may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace rt::metrics {

struct ProcessFigures {
  double cpu_seconds = 0, started_s = 0;  // `started_s` counts from the boot of the machine.
  int threads = 0;
  int64_t rss = 0, shared = 0;  // In bytes; `shared` is the part of rss that others may share.
};
// Returns nullopt if the process has ended.
std::optional<ProcessFigures> process_figures(int pid);

// Figures that are more expensive to get: the kernel walks all pages of the process, and the
// descriptors are counted one by one.
struct ProcessDetail {
  int64_t unique_bytes = 0;  // The pages that belong to this process alone.
  int open_files = 0;        // The number of open file descriptors.
};
// All zeros if the process has ended.
ProcessDetail process_detail(int pid);

}  // namespace rt::metrics
